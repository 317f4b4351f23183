import { chmod, mkdtemp, readFile, rm, stat, writeFile } from "node:fs/promises"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { Readable } from "node:stream"
import { gzipSync } from "node:zlib"
import { beforeAll, describe, expect, onTestFinished, test } from "vitest"
import { crdOf } from "#api/crd.ts"
import { AlternateImageSource } from "#api/v1alpha1/alternateimagesource/index.ts"
import { createCluster, type Json } from "#cluster-sim/index.ts"
import { createClient } from "#runtime/client/index.ts"
import { virtualClock } from "#runtime/clock.ts"
import { seededRandom } from "#runtime/random.ts"
import { manifest } from "#test/support/scenario.ts"
import type { World } from "../command.ts"
import { testWorld } from "../test-world.ts"
import { run as dump } from "./dump.ts"
import { run as plan } from "./plan.ts"
import { run as why } from "./why.ts"

const now = Date.parse("2026-01-01T00:00:00Z")

const web = (name: string, namespace: string, over: Json = {}): Json => ({
  apiVersion: "apps/v1",
  kind: "Deployment",
  metadata: { name, namespace, labels: { app: "web" }, annotations: { "example.com/note": "keep-secret-1" } },
  spec: {
    replicas: 2,
    selector: { matchLabels: { app: name } },
    template: {
      metadata: { labels: { app: name }, annotations: { "example.com/token": "keep-secret-2" } },
      spec: {
        containers: [
          {
            name: "web",
            image: "shop/web:1",
            args: ["--password=keep-secret-3"],
            env: [{ name: "PASSWORD", value: "keep-secret-4" }],
          },
        ],
        volumes: [{ name: "s", secret: { secretName: "keep-secret-5" } }],
      },
    },
  },
  ...over,
})

const objects: Json[] = [
  ...["shop", "park"].map(name => ({ apiVersion: "v1", kind: "Namespace", metadata: { name } })),
  {
    apiVersion: "v1",
    kind: "Secret",
    metadata: { name: "s", namespace: "shop" },
    stringData: { password: "keep-secret-6" },
  },
  {
    apiVersion: "v1",
    kind: "ConfigMap",
    metadata: { name: "c", namespace: "shop" },
    data: { password: "keep-secret-7" },
  },
  web("amber", "shop"),
  web("birch", "shop"),
  web("birch", "park"),
  {
    apiVersion: "v1",
    kind: "Pod",
    metadata: { name: "amber-0", namespace: "shop" },
    spec: { containers: [{ name: "web", image: "shop/web:1", env: [{ name: "P", value: "keep-secret-8" }] }] },
    status: {
      containerStatuses: [
        { name: "web", state: { terminated: { exitCode: 1, message: "keep-secret-9: the last line of a log" } } },
      ],
    },
  },
  {
    apiVersion: "autoimagemanager.io/v1alpha1",
    kind: "ServiceImage",
    metadata: { name: "web" },
    spec: {
      target: { apiVersion: "apps/v1", kind: "Deployment", image: { container: "web" } },
      defaultImage: "shop/web:2",
    },
  },
]

const source: Json = {
  apiVersion: AlternateImageSource.apiVersion,
  kind: AlternateImageSource.kind,
  metadata: { name: "web", namespace: "shop" },
  spec: { imageSourceReplacements: [{ equivalentRepositories: ["shop/web", "quay.io/shop/web"] }] },
}

async function cluster(...more: Json[]) {
  const clock = virtualClock(now)
  const { transport } = createCluster({ clock })
  const connect = () =>
    createClient({ transport: { send: transport.send, close: () => {} }, clock, random: seededRandom(1) })
  const admin = connect()
  const crds = [manifest("charts/aim/crds/serviceimages.yaml"), manifest("examples/dicom/crd.yaml")]
  for (const object of [...crds, ...objects, ...more]) {
    await clock.advance(100)
    const resource = (await admin.discover(object.apiVersion, object.kind))!
    const patch = { type: "apply", body: object, force: true } as const
    await admin.patch(resource, object.metadata, patch)
    if (object.status)
      await admin.patch(
        resource,
        object.metadata,
        { type: "merge", body: { status: object.status } },
        { subresource: "status" },
      )
  }
  return testWorld({ client: admin }, { clock, connect: async () => connect() })
}

async function temporaryFile(name: string): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), "aim-dump-"))
  onTestFinished(() => rm(folder, { recursive: true, force: true }))
  return join(folder, name)
}

let here: Awaited<ReturnType<typeof cluster>>
beforeAll(async () => {
  here = await cluster()
})
const ask = (run: typeof why, words: string[], options: Record<string, unknown> = {}, world: World = here.world) =>
  run({ arguments: words, options }, world)

describe("aim dump", () => {
  test("holds the fields that decisions are made from, and nothing private", async () => {
    const file = await temporaryFile("a.dump")
    const { world } = await cluster(crdOf(AlternateImageSource) as Json, source)
    const { next } = await ask(dump, [], { output: file }, world)
    const text = await readFile(file, "utf8")
    expect(text).toContain('"kind":"CronJob"')
    expect(text).toContain('"image":"shop/web:1"')
    expect(text).toContain('"exitCode":1')
    expect(text).not.toMatch(/not-for-a-dump|PASSWORD|"Secret"|ConfigMap|volumes/)
    expect(next).toMatch(/^\d+ objects into .*aim plan --from/)
    expect((await stat(file)).mode & 0o777).toBe(0o600)
    await chmod(file, 0o644)
    await ask(dump, [], { output: file })
    expect((await stat(file)).mode & 0o777).toBe(0o600)
  })

  test("a kind that is not installed is named and left out; without either kind there is no dump", async () => {
    const { world, said, written } = await cluster()
    await ask(dump, [], {}, world)
    expect(said.join("\n")).toMatch(/^Not readable, and left out: AlternateImageSource \(/m)
    expect(written.join("")).toContain('{"failed":{"apiVersion":"autoimagemanager.io/v1alpha1","kind":"AlternateImage')
    const { transport } = createCluster({ clock: virtualClock(now) })
    const client = createClient({ transport, clock: virtualClock(now), random: seededRandom(1) })
    await expect(ask(dump, [], {}, testWorld({ client }).world)).rejects.toThrow(/serviceimages/)
  })

  test("goes to stdout piece by piece, and says its version first", async () => {
    const { world, written } = await cluster()
    const { text } = await ask(dump, [], { output: "-" }, world)
    expect(text).toBe("")
    expect(written.length).toBeGreaterThan(10)
    expect(JSON.parse(written[0]!)).toMatchObject({ aimDump: 1, by: "aim 1.2.3" })
    expect(JSON.parse(written.at(-1)!)).toMatchObject({ end: true })
  })

  test("is read from stdin, and unpacked where gzip packed it", async () => {
    const file = await temporaryFile("a.dump")
    await ask(dump, [], { output: file })
    const packed = gzipSync(await readFile(file))
    const { text } = await ask(plan, [], { from: file })
    await writeFile(`${file}.gz`, packed)
    expect((await ask(plan, [], { from: `${file}.gz` })).text).toBe(text)
    const piped = { ...here.world, stdin: Readable.from([packed.subarray(0, 100), packed.subarray(100)]) }
    expect((await ask(plan, [], { from: "-" }, piped)).text).toBe(text)
    expect(
      (await ask(plan, [], { from: "-" }, { ...here.world, stdin: Readable.from([await readFile(file)]) })).text,
    ).toBe(text)
    const cut = { ...here.world, stdin: Readable.from([packed.subarray(0, 200)]) }
    await expect(ask(plan, [], { from: "-" }, cut)).rejects.toThrow(/^stdin: unexpected end of file/)
  })

  test("packed gigabytes of one line are refused before they are held", async () => {
    const bomb = { ...here.world, stdin: Readable.from([gzipSync(Buffer.alloc(50_000_000, "a"))]) }
    await expect(ask(plan, [], { from: "-" }, bomb)).rejects.toThrow(/stdin has a line of more than 4000000 characters/)
  })

  const refused: Record<string, { change(text: string): string; says: RegExp }> = {
    "of another version": {
      change: text => text.replace('"aimDump":1', '"aimDump":2'),
      says: /:1: a dump of version 2, and this aim reads version 1/,
    },
    "that is something else": { change: () => "kind: ServiceImage\n", says: /:1: not a dump/ },
    "that is empty": { change: () => "", says: /is empty/ },
    "that was cut off": {
      change: text => text.slice(0, text.lastIndexOf("\n", text.length - 2) + 1),
      says: /is truncated after \d+ objects/,
    },
    "that lost a line": {
      change: text => text.replace(/^.*"name":"amber".*\n/m, ""),
      says: /objects were dumped, and the file has \d+/,
    },
    "with a ServiceImage that is none": {
      change: text => text.replace('"defaultImage":"shop/web:2"', '"defaultImage":2'),
      says: /:\d+: ServiceImage web: spec.defaultImage: is 2/,
    },
    "with a line that is no JSON": {
      change: text => text.replace('{"end"', 'end"'),
      says: /:\d+: not a line of a dump/,
    },
  }
  for (const [name, { change, says }] of Object.entries(refused))
    test(`one ${name} is refused`, async () => {
      const file = await temporaryFile("a.dump")
      await ask(dump, [], { output: file })
      await writeFile(file, change(await readFile(file, "utf8")))
      await expect(ask(plan, [], { from: file })).rejects.toThrow(says)
    })
})

describe("aim why", () => {
  for (const word of ["deployment", "deployments", "deploy", "Deployment", "deployments.apps", "deployments.v1.apps"])
    test(`${word}/amber is understood as kubectl would`, async () => {
      const { text } = await ask(why, [`${word}/amber`], { output: "json" })
      expect(JSON.parse(text)).toMatchObject({
        reason: expect.stringMatching(/RollingOut|WaitingForPace/),
        serviceImage: "web",
      })
    })

  test("says the same from a dump", async () => {
    const file = await temporaryFile("a.dump")
    await ask(dump, [], { output: file })
    const live = await ask(why, ["deploy/amber"])
    expect(await ask(why, ["deploy/amber"], { from: file })).toEqual(live)
    expect(live.text).toContain("Deployment shop/amber has shop/web:1 and is to get shop/web:2 from si/web")
  })

  test("explains a rollout", async () => {
    const { text } = await ask(why, ["si/web"], { output: "yaml" })
    expect(text).toContain("si/web is at operation g1 (InProgress), with shop/web:2; 0/3 up to date.")
  })

  test("explains an object that no ServiceImage is about", async () => {
    const dicom = {
      apiVersion: "services.example.com/v1alpha1",
      kind: "Dicom",
      metadata: { name: "x", namespace: "shop" },
      spec: {},
    }
    const { world } = await cluster(dicom)
    expect((await ask(why, ["dicom/x"], {}, world)).text).toMatch(
      /^NotSelected\nNo ServiceImage is about Dicom objects/,
    )
  })

  const mistakes: Record<string, { word: string; namespace?: string; says: RegExp }> = {
    "a name that is not there": { word: "deploy/ambr", says: /there is no Deployment ambr; did you mean amber\?/ },
    "a name in another namespace": {
      word: "deploy/amber",
      namespace: "park",
      says: /no Deployment amber in namespace park; there is one in shop/,
    },
    "a name in two namespaces": {
      word: "deploy/birch",
      says: /birch is in park, shop: choose one with -n|birch is in shop, park: say which with -n/,
    },
    "a kind that is not there": { word: "dicm/x", says: /there is no kind dicm .*did you mean dicom/ },
    "a kind that is not stamped": {
      word: "service/x",
      says: /there is no kind service that a ServiceImage could stamp/,
    },
    "no kind": { word: "amber", says: /write KIND\/NAME/ },
    "a namespace before the name": { word: "deploy/shop/amber", says: /the namespace is named with -n/ },
    "a rollout that is not there": { word: "si/wob", says: /no ServiceImage wob; did you mean si\/web/ },
  }
  for (const [name, { word, namespace, says }] of Object.entries(mistakes))
    test(`${name} is reported`, async () => {
      await expect(ask(why, [word], { ...(namespace && { namespace }) })).rejects.toThrow(says)
    })
})

describe("aim plan", () => {
  test("shows which objects are next, and what comes then", async () => {
    const { text } = await ask(plan, [])
    expect(text).toContain("would start operation g1: shop/web:2")
    expect(text).toContain("priority 0: the default tier: 3 to stamp (6 pods)")
    expect(text).toMatch(
      /takes: at least 10s \(600ms by pace, 10s of settling\); how long objects take to become healthy is not known/,
    )
  })

  test("of a file that is not applied, with its defaults, and leaves the cluster as it is", async () => {
    const file = await temporaryFile("si.yaml")
    const kept = objects.at(-1)!
    await writeFile(
      file,
      JSON.stringify({
        ...kept,
        spec: { ...kept.spec, defaultImage: "shop/web:3", tiers: [{ upgradeTier: "", requireApproval: true }] },
      }),
    )
    const { text, next } = await ask(plan, [], { file })
    expect(next).toBe("Nothing was applied.")
    expect(text).toContain("AwaitingApproval")
    expect(text).toContain('waits for a person: aim approve si/web ""')
    expect(text).not.toContain("→")
    expect((await ask(plan, [])).text).toContain("shop/web:2")
  })

  test("of a file that cannot be applied names the line", async () => {
    const file = await temporaryFile("si.yaml")
    await writeFile(
      file,
      "apiVersion: autoimagemanager.io/v1alpha1\nkind: ServiceImage\nmetadata: {name: web}\nspec:\n  target: {apiVersion: apps/v1, kind: Pod}\n",
    )
    await expect(ask(plan, [], { file })).rejects.toThrow(/si.yaml:5: spec.target: of the group apps, only/)
  })

  test("of a rollout that is not there names the one that was meant", async () => {
    await expect(ask(plan, ["si/wbe"])).rejects.toThrow("there is no ServiceImage wbe; did you mean si/web?")
  })
})
