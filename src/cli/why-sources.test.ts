import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { beforeAll, describe, expect, onTestFinished, test } from "vitest"
import type { Json } from "#cluster-sim/index.ts"
import { alternateImageSources } from "#controllers/alternateimagesource/resources.ts"
import { formatDecision } from "#core/image/record.ts"
import { formatInstant } from "#lib/instant.ts"
import { virtualClock } from "#runtime/clock.ts"
import type { World } from "./command.ts"
import { run as dump } from "./commands/dump.ts"
import { run as plan } from "./commands/plan.ts"
import { run } from "./commands/why.ts"
import { storedWorld, storedWorldOf } from "./test-store.ts"

const [quay, hub] = ["quay.io/team/app", "docker.io/team/app"]
const now = Date.parse("2026-01-01T12:00:00Z")
const time = (seconds: number) => formatInstant(now + seconds * 1000)

const refused = `failed to pull and unpack image: dial tcp 10.0.0.1:443: connect: connection refused`
const failing = (message = refused): Json => ({
  name: "app",
  image: "",
  imageID: "",
  ready: false,
  restartCount: 0,
  state: { waiting: { reason: "ImagePullBackOff", message } },
})

const pod = (name: string, image: string, over: { metadata?: Json; status?: Json } = {}): Json => ({
  apiVersion: "v1",
  kind: "Pod",
  metadata: { name, namespace: "shop", ...over.metadata },
  spec: { containers: [{ name: "app", image }] },
  ...(over.status && { status: { phase: "Pending", containerStatuses: [over.status] } }),
})

const decision = formatDecision({
  from: `${quay}:2`,
  was: { app: `${quay}:2` },
  to: `${hub}:2`,
  reason: "Unreachable",
  operation: "incident-1",
  by: "alternateimagesource/demo",
  at: now - 60_000,
})

const changed: Json = {
  apiVersion: "apps/v1",
  kind: "Deployment",
  metadata: {
    name: "changed",
    namespace: "shop",
    annotations: {
      "autoimagemanager.io/last-decision": formatDecision({
        ...{ from: `${quay}:9`, was: { app: `${quay}:9` }, to: `${hub}:9`, reason: "Unreachable" },
        ...{ operation: "incident-2", by: "alternateimagesource/demo", at: now - 120_000 },
      }),
    },
  },
  spec: {
    selector: { matchLabels: { app: "changed" } },
    template: {
      metadata: { labels: { app: "changed" } },
      spec: { containers: [{ name: "app", image: `${hub}:9` }] },
    },
  },
}

const space = (name: string): Json => ({ apiVersion: "v1", kind: "Namespace", metadata: { name } })
const source: Json = {
  apiVersion: "autoimagemanager.io/v1alpha1",
  kind: "AlternateImageSource",
  metadata: { name: "demo", namespace: "shop" },
  spec: {
    imageSourceReplacements: [{ equivalentRepositories: [quay, hub, "gone.example.com/app"] }],
    policy: { disabledRepositories: ["gone.example.com/app"] },
  },
}
const objects: Json[] = [
  space("shop"),
  space("lab"),
  source,
  changed,
  pod("well", `${quay}:1`),
  pod("fresh", `${quay}:1`, { status: failing() }),
  pod("repaired", `${hub}:2`, { metadata: { annotations: { "autoimagemanager.io/last-decision": decision } } }),
  pod("rejected", `${quay}:3`, {
    status: { ...failing(), state: { waiting: { reason: "SignatureValidationFailed", message: "no" } } },
  }),
  pod("stranger", "ghcr.io/other/app:1", { status: failing() }),
  pod("skipped", `${quay}:1`, { metadata: { labels: { "autoimagemanager.io/skip": "true" } }, status: failing() }),
  pod("stuck", `${quay}:4`, { status: failing() }),
  pod("lasting", `${quay}:5`, { status: failing() }),
  { ...pod("twin", `${quay}:1`) },
  { ...pod("twin", `${quay}:1`, { metadata: { namespace: "lab" } }) },
  { ...pod("alone", `${quay}:1`, { metadata: { namespace: "lab" } }) },
]

async function dumped(world: World): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), "aim-sources-"))
  onTestFinished(() => rm(folder, { recursive: true, force: true }))
  const output = join(folder, "dump")
  await dump({ arguments: [], options: { output } }, world)
  return output
}

let here: Awaited<ReturnType<typeof storedWorld>>
const ask = async (reference: string, options: Json = {}) =>
  (await run({ arguments: [reference], options }, here.world)).text

beforeAll(async () => {
  here = await storedWorld(virtualClock(now), ...objects)
  const uidOf = async (name: string) =>
    (
      await here.client.get(
        { group: "", version: "v1", plural: "pods", kind: "Pod", namespaced: true },
        { name, namespace: "shop" },
      )
    ).metadata.uid
  const entry = (name: string, uid: string | undefined, incident: Json) => ({
    container: "app",
    currentRepository: quay,
    name,
    type: { group: "", kind: "pod" },
    uid,
    incident: { since: time(-300), failing: quay, bad: [], attempts: 0, ...incident },
  })
  const targetsAvailable = [
    entry("lasting", await uidOf("lasting"), { reason: "Probing", image: `${quay}:5` }),
    entry("stuck", await uidOf("stuck"), {
      reason: "AllSourcesDown",
      image: `${quay}:4`,
      attempts: 2,
      tryAgainAt: time(90),
    }),
    {
      ...entry("repaired", await uidOf("repaired"), { reason: "Switched", image: `${quay}:2`, working: hub }),
      switches: [{ oldImage: `${quay}:2`, newImage: `${hub}:2`, time: time(-60) }],
    },
  ]
  await here.client.patch(
    alternateImageSources,
    { name: "demo", namespace: "shop" },
    { type: "merge", body: { status: { targetsAvailable } } },
    { subresource: "status" },
  )
})

const cases: Record<string, string[]> = {
  well: [
    "Watching",
    ": it is its own workload.",
    `app pulls ${quay}:1, as its workload says. Where that fails, ais/demo has ${hub}.`,
  ],
  fresh: [
    "Confirming",
    `app cannot pull ${quay}:1 (Unreachable): ${refused}`,
    `ais/demo: Confirming: Waiting until aim has seen the repository fail too, or it has failed for confirmSeconds. It asks ${hub}. It looks again at 2026-01-01T12:00:01Z.`,
  ],
  repaired: [
    "Switched  since 2026-01-01T11:59:00Z (1m)",
    `app pulls ${hub}:2 instead of ${quay}:2: alternateimagesource/demo decided so at 2026-01-01T11:59:00Z (Unreachable).`,
    `Since 2026-01-01T11:59:00Z new pods pull from ${hub}, until the workload names another image.`,
    `last decision: 2026-01-01T11:59:00Z by alternateimagesource/demo, operation incident-1 (Unreachable): ${quay}:2 → ${hub}:2`,
  ],
  rejected: ["SignatureRejected", "Never switched: that would get around it."],
  stranger: [
    "Unreachable",
    "No AlternateImageSource of namespace shop has its repository, so nothing is done about it.",
  ],
  skipped: ["Watching", "It says autoimagemanager.io/skip, so it is left alone."],
  stuck: [
    "AllSourcesDown  since 2026-01-01T11:55:00Z (5m)",
    "No repository could serve it, 2 times so far. It looks again at 2026-01-01T12:01:30Z.",
  ],
}
for (const [name, sentences] of Object.entries(cases))
  test(`why pod/${name}`, async () => {
    const text = await ask(`pod/${name}`)
    expect(text.startsWith(sentences[0]!), text).toBe(true)
    for (const sentence of sentences) expect(text).toContain(sentence)
  })

test("for programs, container by container", async () => {
  expect(JSON.parse(await ask("po/repaired", { output: "json" }))).toMatchObject({
    reason: "Switched",
    since: "2026-01-01T11:59:00Z",
    lastDecision: { to: `${hub}:2`, at: "2026-01-01T11:59:00Z" },
    containers: [{ name: "app", image: `${hub}:2`, reason: "Switched", alternateImageSource: "demo" }],
  })
})

test("why ais/NAME explains everything that does not run as its workload says", async () => {
  const text = await ask("ais/demo")
  expect(text).toContain("ais/demo looks after 9 containers of namespace shop.")
  expect(text).toMatch(new RegExp(`pod/stuck app: 1 pod cannot pull ${quay}:4 \\(Unreachable\\).*\\. AllSourcesDown: `))
  expect(text).toContain(
    `deployment/changed app: ais/demo changed the workload from ${quay}:9 to ${hub}:9 at 2026-01-01T11:58:00Z (Unreachable).`,
  )
  expect(text).toContain(`pod/repaired app is pulled from ${hub} instead of ${quay}.`)
})

test("why ais/NAME of one more than a namespace may have", async () => {
  const others = Array.from({ length: 50 }, (_, at) => ({
    ...source,
    metadata: { name: `a${at}`, namespace: "lab" },
  }))
  const { world } = await storedWorld(virtualClock(now), space("lab"), ...others, {
    ...source,
    metadata: { name: "one-more", namespace: "lab" },
  })
  const { text } = await run({ arguments: ["ais/one-more"], options: {} }, world)
  expect(text).toMatch(/^TooMany/)
  expect(text).toContain("ais/one-more looks after nothing.")
})

test("a name in two namespaces, or in none", async () => {
  await expect(ask("pod/twin")).rejects.toThrow(/^Pod twin is in .*: choose one with -n NAMESPACE$/)
  expect(await ask("pod/twin", { namespace: "lab" })).toContain("No AlternateImageSource of namespace lab")
  expect(await ask("pod/alone")).toContain("Pod lab/alone")
  await expect(ask("pod/wel", { namespace: "shop" })).rejects.toThrow(
    "no Pod wel in namespace shop; did you mean well?",
  )
})

test("from a dump the answers are the same", async () => {
  const from = await dumped(here.world)
  expect(here.said.join("\n")).toMatch(/left out: ServiceImage \(/)
  for (const reference of [...Object.keys(cases).map(name => `pod/${name}`), "pod/alone", "ais/demo"])
    expect(await ask(reference, { from }), reference).toBe(await ask(reference))
  expect(await ask("pod/twin", { from, namespace: "lab" })).toBe(await ask("pod/twin", { namespace: "lab" }))
  for (const [reference, says] of [
    ["pod/twin", /^Pod twin is in .*: choose one with -n NAMESPACE$/],
    ["pod/wel", "there is no Pod wel; did you mean well?"],
    ["ais/dmo", "there is no AlternateImageSource dmo; did you mean demo?"],
    ["si/demo", "the dump has no ServiceImages: "],
  ] as const)
    await expect(ask(reference, { from }), reference).rejects.toThrow(says)
})

test("a dump of an older aim, or of a cluster without a source, does not answer", async () => {
  const from = await dumped(here.world)
  const lines = (await readFile(from, "utf8"))
    .trim()
    .split("\n")
    .map(line => JSON.parse(line))
  const older = lines.filter(line => (line.list ?? line).kind !== "AlternateImageSource")
  const end = { end: true, objects: older.filter(({ metadata }) => metadata).length }
  await writeFile(from, [...older.slice(0, -1), end].map(line => JSON.stringify(line)).join("\n"))
  await expect(ask("pod/well", { from })).rejects.toThrow("the dump has no AlternateImageSources: ")
  const { world } = await storedWorld(virtualClock(now), space("shop"), pod("well", `${quay}:1`))
  const empty = { from: await dumped(world) }
  expect(await readFile(empty.from, "utf8")).not.toContain('"kind":"Pod"')
  await expect(run({ arguments: ["pod/well"], options: empty }, world)).rejects.toThrow(
    "the cluster had no AlternateImageSource",
  )
})

test("an AlternateImageSource in a dump that is none is refused", async () => {
  const from = await dumped(here.world)
  const text = await readFile(from, "utf8")
  await writeFile(from, text.replace('"imageSourceReplacements":[', '"imageSourceReplacements":[3,'))
  await expect(ask("ais/demo", { from })).rejects.toThrow(/:\d+: AlternateImageSource demo: spec\.imageSource/)
})

describe("aim plan ais", () => {
  const planned = async (references: string[], options: Json = {}) =>
    (await plan({ arguments: references, options }, here.world)).text

  test("says what each container gets, or what it waits for", async () => {
    const text = await planned(["ais/demo"])
    expect(text).toMatch(/^ais\/demo -n shop {2}\w+ {2}9 containers\n/)
    expect(text).toMatch(/^ {4}pod\/stuck app {2}quay.io\/team\/app:4 {2}AllSourcesDown {2}checks again in 1m30s$/m)
    expect(text).toMatch(
      /^ {4}pod\/fresh app {2}quay.io\/team\/app:1 {2}Confirming, asks first: docker.io\/team\/app:1 {2}checks again in 1s$/m,
    )
    // Confirmed long ago, by the time that the status has: it waits for answers and for nothing else.
    expect(text).toMatch(/^ {4}pod\/lasting app {2}quay.io\/team\/app:5 {2}Probing$/m)
    const [whole] = JSON.parse(await planned(["ais", "demo"], { output: "json" }))
    expect(whole).toMatchObject({ name: "demo", namespace: "shop", targets: 9, next: [] })
    expect(whole.waits).toContainEqual({
      ...{ workload: "pod/stuck", container: "app", image: `${quay}:4`, reason: "AllSourcesDown" },
      ...{ asks: [], lookAgainAt: time(90) },
    })
  })

  test("from a dump the same, of every namespace unless one is given", async () => {
    const from = await dumped(here.world)
    expect(await planned(["ais/demo"], { from })).toBe(await planned(["ais/demo"]))
    expect(await planned(["ais"], { from })).toBe(await planned(["ais"], { namespace: "shop" }))
    expect(await planned(["ais"], { from, namespace: "lab" })).toBe("")
  })

  test("of a source that is not there, and of a file", async () => {
    await expect(planned(["ais/dmo"], { namespace: "shop" })).rejects.toThrow(
      "there is no AlternateImageSource dmo in namespace shop; did you mean demo?",
    )
    await expect(planned(["ais/demo"], { file: "-" })).rejects.toThrow("only ServiceImages can be planned")
  })
})

test("times are compared by the cluster's own clock, which may go faster than ours", async () => {
  const begin = { clock: virtualClock(now), clusterClock: virtualClock(now + 3_600_000) }
  const status = failing()
  const world = await storedWorldOf(begin, space("shop"), source, pod("fresh", `${quay}:1`, { status }))
  const pods = { group: "", version: "v1", plural: "pods", kind: "Pod", namespaced: true }
  const { uid } = (await world.client.get(pods, { name: "fresh", namespace: "shop" })).metadata
  const incident = {
    ...{ since: time(3560), failing: quay, image: `${quay}:1`, bad: [], attempts: 1, reason: "NotFoundAnywhere" },
    tryAgainAt: time(3660),
  }
  const type = { group: "", kind: "pod" }
  const target = { container: "app", currentRepository: quay, name: "fresh", type, uid, incident }
  await world.client.patch(
    alternateImageSources,
    { name: "demo", namespace: "shop" },
    { type: "merge", body: { status: { targetsAvailable: [target] } } },
    { subresource: "status" },
  )
  const { text } = await run({ arguments: ["ais/demo"], options: {} }, world.world)
  expect(text).toContain("NotFoundAnywhere  since 2026-01-01T12:59:20Z (40s)")
  const from = await dumped(world.world)
  expect((await run({ arguments: ["ais/demo"], options: { from } }, world.world)).text).toBe(text)
})
