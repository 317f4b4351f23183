import { readFileSync } from "node:fs"
import { serviceImages } from "#cli/kinds.ts"
import { parse } from "#cli/program.ts"
import { explain } from "#cli/render/explain.ts"
import { testWorld } from "#cli/test-world.ts"
import { commands } from "#cli/tree.ts"
import { everyPart, type Json } from "#cluster-sim/index.ts"
import { createServiceImageController } from "#controllers/serviceimage/controller.ts"
import { createClient } from "#runtime/client/index.ts"
import { seededRandom } from "#runtime/random.ts"
import { manifest, scenario, type World } from "#test/support/scenario.ts"
import { dicomController } from "../../examples/dicom/controller.ts"
import manifestOfPackage from "../../package.json" with { type: "json" }
import { type GeneratedFile, inRepository } from "./file.ts"

// What commands print about one rollout: in docs/cli.md, and as a file for each command.

const image = (tag: string) => `registry.example.com/dicom-service:${tag}`

/** Twelve tenants, five of them early, and the rollout that the page tells of: v1 everywhere, then v2, and v3 for early. */
async function fleet(): Promise<World> {
  const world = await scenario({ seed: 3, parts: everyPart({ nodes: 3 }) })
  await world.apply(manifest("charts/aim/crds/serviceimages.yaml"), manifest("examples/dicom/crd.yaml"))
  world.run([dicomController()])
  world.run([createServiceImageController()])
  const tenant = (name: string, upgradeTier: string): Json => ({
    apiVersion: "services.example.com/v1alpha1",
    kind: "Dicom",
    metadata: { name, namespace: "shop", labels: { ...(upgradeTier && { "upgrade-tier": upgradeTier }) } },
    spec: {},
  })
  await world.apply(
    { apiVersion: "v1", kind: "Namespace", metadata: { name: "shop" } },
    ...["a", "b", "c", "d", "e"].map(name => tenant(name, "earlyAccess")),
    ...["f", "g", "h", "i", "j", "k", "l"].map(name => tenant(name, "")),
    rollout("v1", "v1"),
  )
  await world.until("v1 everywhere", async () => (await stateOf(world)) === "Complete", "30m")
  await world.advance("5m")
  return world
}

const rollout = (usual: string, early: string): Json => ({
  apiVersion: "autoimagemanager.io/v1alpha1",
  kind: "ServiceImage",
  metadata: { name: "dicom-prod" },
  spec: {
    target: { apiVersion: "services.example.com/v1alpha1", kind: "Dicom" },
    defaultImage: image(usual),
    tiers: [
      { upgradeTier: "earlyAccess", priority: 1, image: image(early), maxConcurrent: 2, settleSeconds: 0 },
      { upgradeTier: "", priority: 0, settleSeconds: 0 },
    ],
  },
})

const stateOf = async (world: World) => (await world.get(serviceImages, "dicom-prod")).status?.state
const earlyDone = async (world: World) =>
  (await world.get(serviceImages, "dicom-prod")).status.tierStatus.find((each: Json) => each.upgradeTier).upToDate

/** What a command line prints, as both streams of a terminal show it, or as a pipe gets it. */
async function typed(world: World, line: string, over: object = {}): Promise<string> {
  const client = createClient({
    transport: { send: world.cluster.transport.send, close: () => {} },
    clock: world.clock,
    random: seededRandom(1),
  })
  const { version } = manifestOfPackage
  const { world: outside, written } = testWorld({ client }, { clock: world.clock, version, commands, ...over })
  const decision = parse(line.split(" ").slice(1), outside)
  if (decision.do !== "run") throw new Error(`${line} is not run`)
  const { run } = await decision.command.load()
  const answering = run(decision.input, outside).catch(error => {
    const [first, ...rest] = explain(error, "aim").message.split("\n")
    return { text: [`aim: ${first}`, ...rest.map(each => `     ${each}`)].map(each => `${each}\n`).join(""), next: "" }
  })
  await world.clock.advance(0)
  const { text, next } = await answering
  return `${written.join("")}${text}${next ? `${next}\n` : ""}`
}

/** The page with this output below the line, up to the next line that is typed or the end of the block. */
function withSample(text: string, line: string, output: string): string {
  const at = text.indexOf(`\n$ ${line}\n`)
  if (at < 0) throw new Error(`docs/cli.md has no line: $ ${line}`)
  const from = at + line.length + 4
  const rest = text.slice(from)
  const end = rest.search(/^(\$ |```)/m)
  return text.slice(0, from) + output + rest.slice(end)
}

/**
 * Each file of test/golden/cli, and what is typed in it while three of five early tenants have v3. Nothing of it names a
 * uid or a resourceVersion, which follow from every write that anything made before.
 */
const golden: Record<string, string[]> = {
  get: ["aim get", "aim get -o wide", "aim get si/dicom-prod", "aim get -o name"],
  history: ["aim history si/dicom-prod", "aim history si/dicom-prod -o json"],
  plan: ["aim plan si/dicom-prod", "aim plan si/dicom-prod -o json"],
  status: ["aim status si/dicom-prod", "aim status si/nothing"],
  why: [
    "aim why dicom/a -n shop",
    "aim why dicom/b -n shop",
    "aim why dicom/l -n shop",
    "aim why dicom/nothing -n shop",
  ],
}

export async function cliSamples(): Promise<GeneratedFile[]> {
  const world = await fleet()
  await world.apply(rollout("v2", "v3"))
  await world.until("three of five", async () => (await earlyDone(world)) === 3, "30m")
  const files: GeneratedFile[] = []
  for (const [name, lines] of Object.entries(golden)) {
    let content = ""
    for (const line of lines) content += `$ ${line}\n${await typed(world, line)}\n`
    files.push({ path: inRepository(`test/golden/cli/${name}.txt`), content })
  }

  const path = inRepository("docs/cli.md")
  const terminal = { view: { isTerminal: true, columns: 80, colours: false } }
  let content = readFileSync(path, "utf8")
  const show = async (line: string, over = {}) => {
    content = withSample(content, line, await typed(world, line.replace(" | cat", ""), over))
  }
  await show("aim get")
  await show("aim status", terminal)
  await show("aim status | cat")
  await show(`aim set-image si/dicom-prod ${image("v4")}`)
  await show("aim history si/dicom-prod")
  await show("aim pause si/dicom-prod")
  await show("aim resume si/dicom-prod")
  await world.until("all of it", async () => (await stateOf(world)) === "Complete", "30m")
  await show("aim wait si/dicom-prod --timeout 30m")
  await show(`aim set-image si/dicom-prod ${image("v3")}`)
  await show("aim version")
  return [...files, { path, content }]
}
