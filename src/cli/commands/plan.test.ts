import { globSync, readFileSync } from "node:fs"
import { mkdtemp, rm, writeFile } from "node:fs/promises"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { Readable } from "node:stream"
import { beforeAll, describe, expect, onTestFinished, test } from "vitest"
import { parseManifests } from "#api/manifest.ts"
import { createCluster, type Json } from "#cluster-sim/index.ts"
import { createClient } from "#runtime/client/index.ts"
import { virtualClock } from "#runtime/clock.ts"
import { seededRandom } from "#runtime/random.ts"
import { manifest } from "#test/support/scenario.ts"
import { Failure } from "../command.ts"
import { testWorld } from "../test-world.ts"
import { run as plan } from "./plan.ts"

const examples = new URL("../../../examples/", import.meta.url).pathname
const selector = { matchLabels: { is: "odd" } }
const odd: Json = {
  apiVersion: "services.example.com/v1alpha1",
  kind: "Dicom",
  metadata: { name: "odd", labels: selector.matchLabels },
  spec: { image: "web:1" },
}
/** As the guide applies it: these files leave the registry open. */
const textOf = (file: string) => readFileSync(file, "utf8").replaceAll("REGISTRY", "registry.example.com")
const read = (file: string) => parseManifests(textOf(file)).manifests.map(({ value }) => value as Json)

/** A cluster with the objects that the examples are about, and no controller. */
async function fleet() {
  const clock = virtualClock(Date.parse("2026-01-01T00:00:00Z"))
  const { transport } = createCluster({ clock })
  const connect = () =>
    createClient({ transport: { send: transport.send, close: () => {} }, clock, random: seededRandom(1) })
  const admin = connect()
  const objects = ["dicom/crd.yaml", "dicom/dicoms.yaml", "web/tenants.yaml"].flatMap(file => read(examples + file))
  for (const object of [manifest("charts/aim/crds/serviceimages.yaml"), ...objects, odd]) {
    await clock.advance(100)
    const resource = (await admin.discover(object.apiVersion, object.kind))!
    const { name, namespace = resource.namespaced ? "default" : undefined } = object.metadata
    await admin.patch(resource, { name, namespace }, { type: "apply", body: object, force: true })
  }
  return testWorld({ client: admin }, { clock, connect: async () => connect() })
}

let here: Awaited<ReturnType<typeof fleet>>
beforeAll(async () => {
  here = await fleet()
})
const planOf = (file: string, over = {}) => plan({ arguments: [], options: { file } }, { ...here.world, ...over })

async function written(spec: Json): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), "aim-plan-"))
  onTestFinished(() => rm(folder, { recursive: true, force: true }))
  const file = join(folder, "si.json")
  const object = { apiVersion: "autoimagemanager.io/v1alpha1", kind: "ServiceImage", metadata: { name: "x" }, spec }
  await writeFile(file, JSON.stringify(object))
  return file
}

/** A Canary is planned with what is in the cluster: canary-commands does that. */
const isOfCanary = (file: string) => read(examples + file).some(({ kind }) => kind === "Canary")
const files = globSync("**/*.{yaml,json}", { cwd: examples }).filter(file => !isOfCanary(file))
expect(files.length).toBeGreaterThan(8)

describe("plan -f, with each file of examples/ and the cluster that they are for", () => {
  for (const file of files) {
    const names = read(examples + file)
      .filter(({ kind }) => kind === "ServiceImage")
      .map(({ metadata }) => metadata.name)
    if (names.length > 0)
      test(`${file} is planned`, async () => {
        const { text, exitCode } = await planOf("-", { stdin: Readable.from([textOf(examples + file)]) })
        expect(exitCode).toBe(0)
        for (const name of names) expect(text).toMatch(new RegExp(`^si/${name}  \\w+  0/\\d+ up to date$`, "m"))
        expect(text).toMatch(/would start operation g1/)
        expect(text).toMatch(/→|under way/)
      })
    else
      test(`${file} has none, which is reported`, async () => {
        await expect(planOf(examples + file)).rejects.toThrow(
          new Failure(
            `${examples + file} has neither a ServiceImage nor a Canary: nothing else is planned from a file`,
          ),
        )
      })
  }
})

test("plan -f says how Canaries beside a ServiceImage are planned", async () => {
  const canary = "---\napiVersion: autoimagemanager.io/v1alpha1\nkind: Canary\nmetadata: {name: web}\n"
  const said: string[] = []
  const stdin = Readable.from([textOf(`${examples}dicom/serviceimage.yaml`) + canary])
  await planOf("-", { stdin, say: (line: string) => said.push(line) })
  expect(said).toContain("Canaries of - are planned by: aim plan canary -f -")
})

const dicoms = { apiVersion: "services.example.com/v1alpha1", kind: "Dicom" }
const tenants = { apiVersion: "apps/v1", kind: "Deployment", selector: { matchLabels: { app: "web" } } }

describe("plan -f judges before it looks", () => {
  const wrong: Record<string, { spec: Json; says: RegExp }> = {
    "no spec.target": { spec: { defaultImage: "web:2" }, says: /spec\.target: is missing: write which objects/ },
    "a target that is a text": { spec: { target: "Dicom", defaultImage: "web:2" }, says: /spec\.target: is "Dicom"/ },
    "an image that is a text": {
      spec: { target: { ...dicoms, image: "spec.image" } },
      says: /spec\.target\.image: is/,
    },
    "paths that are a text": { spec: { target: { ...dicoms, image: { paths: "x" } } }, says: /paths: is "x"/ },
    "health that is a number": {
      spec: { target: { ...dicoms, health: 1 }, defaultImage: "a:1" },
      says: /health: is 1/,
    },
    "no spec": { spec: undefined, says: /spec: is missing/ },
    "a misspelt field, with the one that was meant": {
      spec: { target: dicoms, defaultImag: "web:2" },
      says: /spec\.defaultImag: .*did you mean defaultImage\?/s,
    },
  }
  for (const [name, { spec, says }] of Object.entries(wrong))
    test(name, async () => {
      const file = await written(spec)
      await expect(planOf(file)).rejects.toThrow(Failure)
      await expect(planOf(file)).rejects.toThrow(says)
    })
})

describe("a place for the image that no object has", () => {
  const image = (place: Json, target: Json) => ({ target: { ...target, image: place }, defaultImage: "web:2" })
  test("a missing container is reported with the existing ones, and ends with 1", async () => {
    const { text, exitCode, next } = await planOf(await written(image({ container: "wob" }, tenants)))
    expect(exitCode).toBe(1)
    expect(text).toMatch(/InvalidTarget: 8 objects .*has no container wob, only web/)
    expect(text).not.toMatch(/[1-9]\d* to stamp/)
    expect(next).toMatch(/si\/x cannot be carried out: .*spec\.target\.image/)
  })
  test("a path below a text", async () => {
    const file = await written(image({ paths: ["spec.image.tag"] }, { ...dicoms, selector }))
    const { exitCode, text } = await planOf(file)
    expect(exitCode).toBe(1)
    expect(text).toMatch(/InvalidTarget: 1 object \(default\/odd\) .*spec\.image is not an object/)
  })
  test("where some objects have it, they are planned", async () => {
    const { exitCode } = await planOf(await written(image({ container: "web" }, tenants)))
    expect(exitCode).toBe(0)
  })
})

test("plan -f - reads stdin", async () => {
  const stdin = Readable.from([readFileSync(`${examples}dicom/serviceimage.yaml`)])
  const { text } = await planOf("-", { stdin })
  expect(text).toContain("si/dicom-serviceimage-prod")
  await expect(planOf("-", { stdin: Readable.from(["kind: ServiceImage\n"]) })).rejects.toThrow(/^stdin:1: /)
})
