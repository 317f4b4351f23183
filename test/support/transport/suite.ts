import { expect, test } from "vitest"
import type {
  Answer,
  DeliveredObject,
  Delivery,
  FleetTransport,
  Manifest,
  ObjectSeen,
  Observation,
  Reach,
} from "#core/cluster-fleet/transport.ts"

/** A cluster behind a transport, and what others do there. Every transport passes the same suite. */
export type TransportWorld = {
  transport: FleetTransport
  cluster: string
  /** Lets what is under way go on for a moment. */
  pass(): Promise<void>
  spoke: {
    read(manifest: Manifest): Promise<Seen | undefined>
    /** A person changes the object; a conflict of fields does not stop it. */
    edit(manifest: Manifest, change: object): Promise<void>
    /** The controllers of the cluster write its status. */
    status(manifest: Manifest, status: object): Promise<void>
    delete(manifest: Manifest): Promise<void>
  }
  /** The cluster cannot be reached, or can again. */
  setAway(isAway: boolean): Promise<void>
  /** A new process on the hub. */
  restarted(): Promise<FleetTransport>
  close(): Promise<void>
}

type Seen = {
  metadata: { generation?: number; resourceVersion?: string; annotations?: Record<string, string> }
} & Record<string, unknown>

export type SuiteOptions = {
  open(): Promise<TransportWorld>
  /** A case that this transport answers otherwise, and why. */
  except?: Readonly<Record<string, string>>
}

const source = (name: string, repository: string): Manifest => ({
  apiVersion: "autoimagemanager.io/v1alpha1",
  kind: "AlternateImageSource",
  metadata: { name, namespace: "default" },
  spec: { equivalentRepositories: [repository, `mirror.example.com/${name}`] },
})

const config = (name: string, data: Record<string, string>): Manifest => ({
  ...{ apiVersion: "v1", kind: "ConfigMap", metadata: { name, namespace: "default" }, data },
})

const judged = (name: string, repository: string): DeliveredObject => ({
  manifest: source(name, repository),
  lifetime: "Kept",
  judge: { by: "Ready", expects: [{ path: ["spec", "equivalentRepositories", 0], value: repository }] },
  fields: { observed: ["status", "observedGeneration"], word: ["status", "conditions", 0, "message"] },
})
const helper = (name: string, data: Record<string, string>): DeliveredObject => ({
  ...{ manifest: config(name, data), lifetime: "Removed", judge: { by: "Presence" } },
})

const first = "registry.example.com/web"
const second = "registry.example.com/web2"
export const deliveryOf = (objects: readonly DeliveredObject[], more: Partial<Delivery> = {}): Delivery => ({
  ...{ bundle: "run-one", run: "run-1", fence: "a", objects, ...more },
})
const web = judged("web", first)
const plain = deliveryOf([web])

const condition = (type: string, status: string, observedGeneration: number, message = "fine") => ({
  ...{ type, status, observedGeneration, reason: `${type}Reason`, message, lastTransitionTime: "2026-01-01T00:00:00Z" },
})
const statusFor = (generation: number, more: object = {}) => ({
  observedGeneration: generation,
  conditions: [condition("Ready", "True", generation)],
  ...more,
})

const given = <T>(answer: Answer<T>): T => {
  if (!answer.ok) throw new Error(`${answer.trouble.is}: ${answer.trouble.message}`)
  return answer.value
}

/** Waits until the cluster shows what is asked for, and fails with what it showed last. */
async function until(
  world: TransportWorld,
  delivery: Delivery,
  isSo: (seen: Observation) => boolean,
  transport = world.transport,
): Promise<Observation> {
  let last: Answer<Observation> | undefined
  for (let tries = 0; tries < 200; tries++) {
    last = await transport.observe(world.cluster, delivery)
    if (last.ok && isSo(last.value)) return last.value
    await world.pass()
  }
  throw new Error(`never so; at last ${JSON.stringify(last)}`)
}
const verdictOf = (seen: ObjectSeen | undefined) => (seen?.is === "Present" ? seen.verdict.is : seen?.is)
const shows =
  (...words: string[]) =>
  (seen: Observation) =>
    words.every((word, index) => verdictOf(seen.objects[index]) === word)

async function generationOf(world: TransportWorld, manifest: Manifest): Promise<number> {
  return (await world.spoke.read(manifest))?.metadata.generation ?? 0
}
async function becomesReady(world: TransportWorld, manifest: Manifest) {
  await world.spoke.status(manifest, statusFor(await generationOf(world, manifest)))
}

const cases: Record<string, (world: TransportWorld) => Promise<void>> = {
  async "an applied object is on the cluster and names its run"(world) {
    given(await world.transport.apply(world.cluster, plain))
    await until(world, plain, shows("Waiting"))
    const seen = await world.spoke.read(web.manifest)
    expect(seen?.metadata.annotations?.["autoimagemanager.io/run"]).toBe("run-1")
    expect(seen?.spec).toMatchObject(web.manifest.spec as object)
  },
  async "an object without a status waits"(world) {
    given(await world.transport.apply(world.cluster, plain))
    const { objects } = await until(world, plain, shows("Waiting"))
    expect(objects[0]).toMatchObject({ verdict: { reason: "NotObserved" } })
  },
  async "Ready for its generation is settled"(world) {
    given(await world.transport.apply(world.cluster, plain))
    await until(world, plain, shows("Waiting"))
    await becomesReady(world, web.manifest)
    await until(world, plain, shows("Settled"))
  },
  async "Ready of an earlier generation is not settled"(world) {
    given(await world.transport.apply(world.cluster, plain))
    await until(world, plain, shows("Waiting"))
    await becomesReady(world, web.manifest)
    await until(world, plain, shows("Settled"))
    await world.spoke.edit(web.manifest, { spec: { equivalentRepositories: [first, "other.example.com/web"] } })
    await until(world, plain, shows("Waiting"))
  },
  async "a Ready condition that is older than its status is not settled"(world) {
    given(await world.transport.apply(world.cluster, plain))
    await until(world, plain, shows("Waiting"))
    const generation = await generationOf(world, web.manifest)
    const old = [condition("Ready", "True", generation - 1)]
    await world.spoke.status(web.manifest, statusFor(generation, { conditions: old }))
    const { objects } = await until(
      world,
      plain,
      ({ objects: [seen] }) => seen?.is === "Present" && seen.fields.observed === generation,
    )
    expect(verdictOf(objects[0])).toBe("Waiting")
  },
  async "Stalled is reported with reason and message"(world) {
    given(await world.transport.apply(world.cluster, plain))
    await until(world, plain, shows("Waiting"))
    const generation = await generationOf(world, web.manifest)
    const conditions = [
      condition("Ready", "False", generation),
      condition("Stalled", "True", generation, "the registry refuses"),
    ]
    await world.spoke.status(web.manifest, { observedGeneration: generation, conditions })
    const { objects } = await until(world, plain, shows("Stalled"))
    expect(objects[0]).toMatchObject({ verdict: { reason: "StalledReason", message: "the registry refuses" } })
  },
  async "what an object says is cut, and its fields are scalars"(world) {
    given(await world.transport.apply(world.cluster, plain))
    await until(world, plain, shows("Waiting"))
    const generation = await generationOf(world, web.manifest)
    const conditions = [condition("Ready", "False", generation, "x".repeat(3000))]
    await world.spoke.status(web.manifest, { observedGeneration: generation, conditions })
    const { objects } = await until(
      world,
      plain,
      ({ objects: [seen] }) => seen?.is === "Present" && seen.fields.word !== undefined,
    )
    const [seen] = objects
    if (seen?.is !== "Present" || seen.verdict.is !== "Waiting") throw new Error(JSON.stringify(seen))
    expect(seen.verdict.message).toHaveLength(512)
    expect(String(seen.fields.word)).toHaveLength(512)
    expect(seen.fields.observed).toBe(generation)
  },
  async "the same delivery again changes nothing"(world) {
    const { version } = given(await world.transport.apply(world.cluster, plain))
    await until(world, plain, shows("Waiting"))
    const before = await world.spoke.read(web.manifest)
    expect(given(await world.transport.apply(world.cluster, plain)).version).toBe(version)
    await world.pass()
    expect((await world.spoke.read(web.manifest))?.metadata.resourceVersion).toBe(before?.metadata.resourceVersion)
  },
  async "what was settled is not believed of new content"(world) {
    given(await world.transport.apply(world.cluster, plain))
    await until(world, plain, shows("Waiting"))
    await becomesReady(world, web.manifest)
    await until(world, plain, shows("Settled"))
    const next = deliveryOf([judged("web", second)], { run: "run-2" })
    given(await world.transport.apply(world.cluster, next))
    for (let looks = 0; looks < 5; looks++) {
      const seen = given(await world.transport.observe(world.cluster, next))
      expect(verdictOf(seen.objects[0])).not.toBe("Settled")
      await world.pass()
    }
    await until(world, next, shows("Waiting"))
    await becomesReady(world, web.manifest)
    await until(world, next, shows("Settled"))
  },
  async "an image that was edited on the cluster differs"(world) {
    given(await world.transport.apply(world.cluster, plain))
    await until(world, plain, shows("Waiting"))
    await world.spoke.edit(web.manifest, {
      spec: { equivalentRepositories: ["evil.example.com/web", "a.example.com/b"] },
    })
    await becomesReady(world, web.manifest)
    const { objects } = await until(world, plain, shows("Differs"))
    expect(objects[0]).toMatchObject({
      verdict: { message: expect.stringContaining("spec.equivalentRepositories[0]") },
    })
  },
  async "a field that another writer took is contested"(world) {
    given(await world.transport.apply(world.cluster, plain))
    await until(world, plain, shows("Waiting"))
    await world.spoke.edit(web.manifest, {
      spec: { equivalentRepositories: ["evil.example.com/web", "a.example.com/b"] },
    })
    const next = deliveryOf([judged("web", second)], { run: "run-2" })
    const applied = given(await world.transport.apply(world.cluster, next))
    const refused = applied.refused[0]?.seen ?? (await until(world, next, shows("Contested"))).objects[0]
    expect(refused).toMatchObject({ is: "Contested", message: expect.stringContaining("editor") })
    expect((await world.spoke.read(web.manifest))?.spec).toMatchObject({
      equivalentRepositories: ["evil.example.com/web", "a.example.com/b"],
    })
  },
  async "an object that the cluster's schema refuses is refused, and the next one arrives"(world) {
    const wrong: DeliveredObject = { ...web, manifest: { ...web.manifest, spec: { equivalentRepositories: 7 } } }
    const both = deliveryOf([wrong, helper("note", { a: "1" })])
    const applied = given(await world.transport.apply(world.cluster, both))
    const refused = applied.refused[0]?.seen ?? (await until(world, both, shows("Refused"))).objects[0]
    expect(refused).toMatchObject({ is: "Refused" })
    await until(world, both, ({ objects }) => verdictOf(objects[1]) === "Settled")
  },
  async "of a removed bundle helpers go and what was delivered stays"(world) {
    const both = deliveryOf([web, helper("note", { a: "1" })])
    given(await world.transport.apply(world.cluster, both))
    await until(world, both, shows("Waiting", "Settled"))
    await untilGone(world, both)
    expect(await world.spoke.read(config("note", {}))).toBeUndefined()
    expect(await world.spoke.read(web.manifest)).toBeDefined()
    expect(given(await world.transport.remove(world.cluster, both))).toEqual({ is: "Gone" })
  },
  async "a bundle that was never applied is absent"(world) {
    const seen = given(await world.transport.observe(world.cluster, plain))
    expect(seen).toMatchObject({ bundle: "Absent", objects: [{ is: "Absent" }] })
  },
  async "a cluster that is away is unreachable and has nothing concluded about it"(world) {
    given(await world.transport.apply(world.cluster, plain))
    await until(world, plain, shows("Waiting"))
    await world.setAway(true)
    const next = deliveryOf([judged("web", second)], { run: "run-2" })
    const applied = await world.transport.apply(world.cluster, next)
    // A write on a connection that ends under it may have arrived.
    if (!applied.ok) expect(["Unreachable", "UnknownOutcome"]).toContain(applied.trouble.is)
    const seen = await world.transport.observe(world.cluster, next)
    if (seen.ok) expect(seen.value.objects).toMatchObject([{ is: "Unknown" }])
    else expect(seen.trouble.is).toBe("Unreachable")
    await world.setAway(false)
    given(await world.transport.apply(world.cluster, next))
    await until(world, next, shows("Waiting"))
    expect((await world.spoke.read(web.manifest))?.metadata.annotations?.["autoimagemanager.io/run"]).toBe("run-2")
  },
  async "a probe says whether the cluster is there, and when it was last"(world) {
    await reaches(world, true)
    await world.setAway(true)
    expect(await reaches(world, false)).toMatchObject({ lastContact: expect.any(Number) })
    await world.setAway(false)
    await reaches(world, true)
  },
  async "an apply that was decided from an earlier look is a conflict and writes nothing"(world) {
    given(await world.transport.apply(world.cluster, plain))
    const { version: seen } = await until(world, plain, shows("Waiting"))
    const next = deliveryOf([judged("web", second)], { run: "run-2" })
    given(await world.transport.apply(world.cluster, next))
    await until(world, next, shows("Waiting"))
    const late = await world.transport.apply(world.cluster, plain, { seen: seen ?? "" })
    expect(late).toMatchObject({ ok: false, trouble: { is: "Conflict" } })
    await world.pass()
    expect((await world.spoke.read(web.manifest))?.metadata.annotations?.["autoimagemanager.io/run"]).toBe("run-2")
  },
  async "another fence makes earlier looks void, and changes nothing else"(world) {
    given(await world.transport.apply(world.cluster, plain))
    await until(world, plain, shows("Waiting"))
    await becomesReady(world, web.manifest)
    const { version: seen } = await until(world, plain, shows("Settled"))
    const generation = await generationOf(world, web.manifest)
    const fenced = { ...plain, fence: "b" }
    given(await world.transport.apply(world.cluster, fenced))
    const late = await world.transport.apply(world.cluster, plain, { seen: seen ?? "" })
    expect(late).toMatchObject({ ok: false, trouble: { is: "Conflict" } })
    await until(world, fenced, shows("Settled"))
    expect(await generationOf(world, web.manifest)).toBe(generation)
  },
  async "a subscriber is called when the cluster changes, and not after it ends"(world) {
    let calls = 0
    const end = world.transport.subscribe(world.cluster, () => calls++)
    given(await world.transport.apply(world.cluster, plain))
    await until(world, plain, shows("Waiting"))
    calls = 0
    await becomesReady(world, web.manifest)
    for (let tries = 0; tries < 200 && calls === 0; tries++) await world.pass()
    expect(calls).toBeGreaterThan(0)
    await until(world, plain, shows("Settled"))
    end()
    await world.pass()
    calls = 0
    await world.spoke.edit(web.manifest, { spec: { equivalentRepositories: [first, "c.example.com/b"] } })
    for (let tries = 0; tries < 5; tries++) await world.pass()
    expect(calls).toBe(0)
  },
  async "a new process on the hub sees the same"(world) {
    given(await world.transport.apply(world.cluster, plain))
    await until(world, plain, shows("Waiting"))
    await becomesReady(world, web.manifest)
    const before = await until(world, plain, shows("Settled"))
    const other = await world.restarted()
    const after = await until(world, plain, shows("Settled"), other)
    expect(after.version).toBe(before.version)
    given(await other.apply(world.cluster, plain, { seen: after.version ?? "" }))
  },
  async "a delivery with a foreign kind, an object twice or too much is not sent"(world) {
    const role = {
      ...web,
      manifest: { apiVersion: "rbac.authorization.k8s.io/v1", kind: "ClusterRole", metadata: { name: "x" } },
    }
    const large = helper("large", { a: "x".repeat(500_000) })
    const homeless = { ...web, manifest: { ...web.manifest, metadata: { name: "web" } } }
    for (const objects of [[role], [web, web], [large], [homeless]])
      expect(await world.transport.apply(world.cluster, deliveryOf(objects))).toMatchObject({
        ...{ ok: false, trouble: { is: "Undeliverable" } },
      })
    expect(await world.spoke.read(web.manifest)).toBeUndefined()
  },
  async "an object that was deleted on the cluster is absent"(world) {
    given(await world.transport.apply(world.cluster, plain))
    await until(world, plain, shows("Waiting"))
    await world.spoke.delete(web.manifest)
    await until(world, plain, shows("Absent"))
  },
  async "a bundle that is removed while the cluster is away goes when it is back"(world) {
    const both = deliveryOf([helper("note", { a: "1" })])
    given(await world.transport.apply(world.cluster, both))
    await until(world, both, shows("Settled"))
    await world.setAway(true)
    const answer = await world.transport.remove(world.cluster, both)
    if (answer.ok) expect(answer.value.is).toBe("Leaving")
    else expect(answer.trouble.is).toBe("Unreachable")
    await world.setAway(false)
    await untilGone(world, both)
    expect(await world.spoke.read(config("note", {}))).toBeUndefined()
  },
  async "a cluster that is not known is trouble, not an exception"(world) {
    for (const answer of [
      await world.transport.apply("nowhere", plain),
      await world.transport.observe("nowhere", plain),
      await world.transport.remove("nowhere", plain),
    ])
      expect(answer).toMatchObject({ ok: false, trouble: { is: "UnknownCluster" } })
  },
}

async function reaches(world: TransportWorld, isReachable: boolean): Promise<Reach> {
  for (let tries = 0; tries < 200; tries++) {
    const reach = given(await world.transport.probe(world.cluster))
    if (reach.isReachable === isReachable) return reach
    await world.pass()
  }
  throw new Error(`the cluster never is ${isReachable ? "there" : "away"}`)
}

async function untilGone(world: TransportWorld, delivery: Delivery) {
  for (let tries = 0; tries < 200; tries++) {
    const removal = await world.transport.remove(world.cluster, delivery)
    if (removal.ok && removal.value.is === "Gone") return
    await world.pass()
  }
  throw new Error("the bundle never goes")
}

/** Declares every case as a test of this transport. */
export function transportSuite({ open, except = {} }: SuiteOptions) {
  for (const [name, run] of Object.entries(cases)) {
    if (except[name] !== undefined) continue
    test(name, async () => {
      const world = await open()
      try {
        await run(world)
      } finally {
        await world.close()
      }
    })
  }
}
