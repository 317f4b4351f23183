import { expect, test } from "vitest"
import type { Json } from "#cluster-sim/index.ts"
import { formatInstant } from "#lib/instant.ts"
import type { Commit, Run, Sent } from "#test/support/record.ts"
import { violationsOf } from "./invariants.ts"
import { decisionAnnotation, fenceAnnotation } from "./reading.ts"

// Each invariant is shown a history that breaks it, made by hand: a check that never fails is of no use.

const begin = Date.parse("2026-01-01T00:00:00Z")
const names = ["early", "late"]

/** Writes a history: two tenants, one of a higher priority, and processes 1 and 2 that may write what they like. */
class Story {
  readonly run: Run & { commits: Commit[]; sent: Sent[] }
  readonly #objects = new Map<string, Json>()
  #revision = 10
  #now = begin

  constructor() {
    this.run = { seed: 0, initial: [], commits: [], sent: [], lagMs: 0 }
    for (const name of names)
      this.put({
        apiVersion: "example.com/v1",
        kind: "Tenant",
        metadata: { name, namespace: "default", uid: name, generation: 1, labels: { "upgrade-tier": name } },
        spec: { failureHaltsUpdate: true, image: "v1" },
      })
    this.put({ kind: "ServiceImage", metadata: { name: "si", uid: "si", generation: 1 }, spec: specOf("v1") })
    this.later(60)
  }

  later(seconds: number): this {
    this.#now += seconds * 1000
    return this
  }

  put(object: Json): this {
    const before = this.#objects.get(object.metadata.name)
    const revision = ++this.#revision
    const metadata = {
      creationTimestamp: formatInstant(this.#now),
      ...object.metadata,
      resourceVersion: String(revision),
    }
    const after = { ...object, metadata }
    this.#objects.set(metadata.name, after)
    const type = before ? "MODIFIED" : "ADDED"
    this.run.commits.push({ revision, place: "", type, object: after, before, manager: "", at: this.#now })
    return this
  }

  /** Another writer changes an object. */
  edit(name: string, change: (object: Json) => Json): this {
    return this.put(change(structuredClone(this.#objects.get(name)!)))
  }

  spec(image: string, more: Json = {}): this {
    return this.edit("si", si => ({
      ...si,
      metadata: { ...si.metadata, generation: si.metadata.generation + 1 },
      spec: { ...specOf(image), ...more },
    }))
  }

  upToDate(...tenants: string[]): this {
    for (const name of tenants)
      this.edit(name, object => {
        const { generation } = object.metadata
        const condition = (type: string) => ({ type, status: "True", observedGeneration: generation })
        const conditions = [condition("UpToDate"), condition("Deployed")]
        return { ...object, status: { observedGeneration: generation, conditions } }
      })
    return this
  }

  status(process: number, inflight: string[], more: Json = {}): this {
    const { isComplete = false, ...rest } = more
    const si = this.#objects.get("si")!
    const { generation } = si.metadata
    const body = {
      ...si,
      status: {
        observedGeneration: generation,
        conditions: [condition("Complete", isComplete, generation, this.#now)],
        tierStatus: names.map(upgradeTier => ({ upgradeTier, newDeploymentImage: "v1", conditions: [] })),
        operation: { id: `g${generation}`, startedAt: formatInstant(this.#now), phase: "InProgress" },
        history: [],
        electionID: `leader ${process}`,
        inflight: inflight.map(name => `default/${name}`),
        ...rest,
      },
    }
    this.#send(process, "PUT", "/apis/aim/v1/serviceimages/si/status", body)
    return this.put(body)
  }

  /** Sends a stamp; committed unless it is to arrive later. */
  stamp(process: number, name: string, image: string, { isUnconditional = false, after = this.#revision } = {}): this {
    const before = this.#objects.get(name)!
    const { generation } = this.#objects.get("si")!.metadata
    const decision = {
      from: before.spec.image,
      to: image,
      by: "serviceimage/si",
      uid: "si",
      operation: `g${generation}`,
    }
    const annotations = { [decisionAnnotation]: JSON.stringify(decision) }
    const version = isUnconditional ? {} : { resourceVersion: before.metadata.resourceVersion }
    this.#send(process, "PATCH", "/tenants", { spec: { image }, metadata: { ...version, annotations } }, after)
    return this.edit(name, object => ({
      ...object,
      metadata: { ...object.metadata, annotations, generation: object.metadata.generation + 1 },
      spec: { ...object.spec, image },
    }))
  }

  touch(process: number, name: string, mark: string): this {
    const annotations = { [fenceAnnotation]: mark }
    this.#send(process, "PATCH", "/tenants", { metadata: { annotations } })
    return this.edit(name, object => ({
      ...object,
      metadata: { ...object.metadata, annotations: { ...object.metadata.annotations, ...annotations } },
    }))
  }

  get revision(): number {
    return this.#revision
  }

  #send(process: number, method: string, path: string, body: Json, after = this.#revision): void {
    this.run.sent.push({ process, method, path, body, at: this.#now, after, revision: this.#revision + 1 })
  }
}

const specOf = (image: string): Json => ({
  target: { apiVersion: "example.com/v1", kind: "Tenant" },
  defaultImage: image,
  tiers: [
    { upgradeTier: "early", priority: 1 },
    { upgradeTier: "late", priority: 0 },
  ],
})

/** A ServiceImage for the same tenants that does nothing. */
const another = (name: string, creationTimestamp: string): Json => ({
  kind: "ServiceImage",
  metadata: { name, uid: name, generation: 1, creationTimestamp },
  spec: specOf("v1"),
})

const stampedBy =
  (name: string) =>
  (object: Json): Json => ({
    ...object,
    metadata: {
      ...object.metadata,
      annotations: { [decisionAnnotation]: JSON.stringify({ to: object.spec.image, by: `serviceimage/${name}` }) },
    },
  })

const condition = (type: string, isTrue: boolean, generation: number, now: number): Json => ({
  type,
  status: isTrue ? "True" : "False",
  observedGeneration: generation,
  // As old as its status: the stories flip it at most once.
  lastTransitionTime: isTrue ? formatInstant(now) : formatInstant(begin),
})

/** From v1, where all are complete, to v2, where early has been brought. */
const early = () =>
  new Story()
    .upToDate("early", "late")
    .later(60)
    .status(1, [], { isComplete: true })
    .spec("v2")
    .later(60)
    .status(1, names)
    .stamp(1, "early", "v2")
    .later(60)
    .upToDate("early")

/** Late came without an image during the operation, which is rolled back; the one before it was complete without tier late. */
const takenBack = (image: string) =>
  early()
    .edit("late", object => ({ ...object, spec: { ...object.spec, image: "" } }))
    .stamp(1, "late", "v2")
    .status(1, names, {
      operation: { id: "g2", startedAt: formatInstant(begin), phase: "RollingBack" },
      history: [
        { phase: "Superseded", images: { late: "v3" } },
        { phase: "Complete", images: { early: "v1" } },
        { phase: "Complete", images: { early: "v1", late: "v0" } },
      ],
    })
    .stamp(1, "late", image)

const cases: Record<string, { story: Story; breaks: string[] }> = {
  "a rollout as it should be": {
    story: early().stamp(1, "late", "v2").later(60).upToDate("late").status(1, [], { isComplete: true }),
    breaks: [],
  },
  "an image that the spec does not name": { story: early().stamp(1, "late", "v3"), breaks: ["S1"] },
  "the image of a spec that the process has not confirmed": {
    story: early().spec("v3").stamp(1, "late", "v3"),
    breaks: ["S1"],
  },
  "a first image that is taken back, for the one that was last complete in its tier": {
    story: takenBack("v0"),
    breaks: [],
  },
  "a first image that is taken back, for one that was never complete in its tier": {
    story: takenBack("v3"),
    breaks: ["S1"],
  },
  "a process that never wrote a status": { story: early().stamp(2, "late", "v2"), breaks: ["S1"] },
  "a withdrawn image, after Complete": {
    story: (() => {
      const story = early()
      const { revision } = story
      story.spec("v1").status(2, names).touch(2, "late", "2").stamp(2, "early", "v1").upToDate("early")
      return story.status(2, [], { isComplete: true }).stamp(1, "late", "v2", { after: revision })
    })(),
    breaks: ["S2", "S6"],
  },
  "Complete, and one has the old image": {
    story: early().later(60).status(1, [], { isComplete: true }),
    breaks: ["S3"],
  },
  "Complete, and one is not up to date": {
    story: early().stamp(1, "late", "v2").later(60).status(1, [], { isComplete: true }),
    breaks: ["S3"],
  },
  "Complete, and the only health there is speaks of an older generation": {
    story: early()
      .stamp(1, "late", "v2")
      .edit("late", object => ({ ...object, status: { ...object.status, observedGeneration: 1 } }))
      .later(60)
      .status(1, [], { isComplete: true }),
    breaks: ["S3"],
  },
  "Complete, and an object that may fail did, and is counted": {
    story: early()
      .edit("late", object => ({ ...object, spec: { ...object.spec, failureHaltsUpdate: false } }))
      .stamp(1, "late", "v2")
      .later(3600)
      .status(1, [], {
        isComplete: true,
        tierStatus: [{ upgradeTier: "late", ignoredFailures: 1, newDeploymentImage: "v2" }],
      }),
    breaks: [],
  },
  "Complete, and one is in no tier while there is no default image": {
    story: new Story()
      .spec("", { tiers: [{ upgradeTier: "early", image: "v1", priority: 1 }] })
      .upToDate("early")
      .later(60)
      .status(1, [], { isComplete: true }),
    breaks: [],
  },
  "Complete, and what they have is only written otherwise": {
    story: new Story()
      .upToDate(...names)
      .spec("docker.io/library/v1:latest")
      .later(60)
      .status(1, [], { isComplete: true }),
    breaks: [],
  },
  "Complete, and one has another image that begins like the wanted one": {
    story: new Story()
      .upToDate(...names)
      .spec("docker.io/library/v1:latest-2")
      .later(60)
      .status(1, [], { isComplete: true }),
    breaks: ["S3"],
  },
  "an image that the spec has in other words": {
    story: early().stamp(1, "late", "docker.io/library/v2:latest"),
    breaks: [],
  },
  "a lower priority, while the higher one has its image in other words": {
    story: new Story()
      .edit("early", object => ({ ...object, spec: { ...object.spec, image: "docker.io/library/v2" } }))
      .upToDate(...names)
      .spec("v2")
      .later(60)
      .status(1, names)
      .stamp(1, "late", "v2"),
    breaks: [],
  },
  "a lower priority, while the higher one belongs to an older ServiceImage": {
    story: new Story()
      .put(another("older", "2025-01-01T00:00:00Z"))
      .upToDate(...names)
      .spec("v2")
      .edit("late", stampedBy("si"))
      .later(60)
      .status(1, names)
      .stamp(1, "late", "v2"),
    breaks: [],
  },
  "a lower priority, while the higher one belonged to a ServiceImage that is gone": {
    story: new Story()
      .edit("early", stampedBy("gone"))
      .upToDate(...names)
      .spec("v2")
      .later(60)
      .status(1, names)
      .stamp(1, "late", "v2"),
    breaks: ["S4"],
  },
  "a lower priority, while the higher one is also selected by a younger ServiceImage": {
    story: new Story()
      .put(another("younger", "2027-01-01T00:00:00Z"))
      .upToDate(...names)
      .spec("v2")
      .later(60)
      .status(1, names)
      .stamp(1, "late", "v2"),
    breaks: ["S4"],
  },
  "the lower priority first": {
    story: new Story()
      .upToDate(...names)
      .spec("v2")
      .later(60)
      .status(1, names)
      .stamp(1, "late", "v2"),
    breaks: ["S4"],
  },
  "a stamp while paused": {
    story: early().spec("v2", { paused: true }).status(1, ["late"]).stamp(1, "late", "v2"),
    breaks: ["S4"],
  },
  "a stamp while halted": {
    story: early()
      .status(1, ["late"], { conditions: [condition("Halted", true, 2, begin)] })
      .stamp(1, "late", "v2"),
    breaks: ["S4"],
  },
  "a stamp on an object that keeps its image": {
    story: early()
      .edit("late", object => ({ ...object, spec: { ...object.spec, manuallySpecifiedImage: true } }))
      .stamp(1, "late", "v2"),
    breaks: ["S5"],
  },
  "a stamp of the old leader after one of the new": {
    story: (() => {
      const story = early()
      const { revision } = story
      return story.status(2, ["late"]).stamp(2, "late", "v2").stamp(1, "late", "v2", { after: revision })
    })(),
    breaks: ["S6", "S9"],
  },
  "a stamp that was not declared": { story: early().status(1, []).stamp(1, "late", "v2"), breaks: ["S6"] },
  "a successor that forgets what was declared": {
    story: early().status(2, []),
    breaks: ["S6"],
  },
  "a successor that touches what was declared": {
    story: early().status(2, names).touch(2, "early", "2").touch(2, "late", "2").status(2, []),
    breaks: [],
  },
  "a status that observes less than before": {
    story: early().status(1, [], { observedGeneration: 1 }),
    breaks: ["S7"],
  },
  "a status that observes what is not there yet": {
    story: early().status(1, [], { observedGeneration: 9 }),
    breaks: ["S7"],
  },
  "a condition of an older generation": {
    story: early().status(1, [], { conditions: [condition("Complete", false, 1, begin)] }),
    breaks: ["S7"],
  },
  "a time that moves by itself": {
    story: early().status(1, [], {
      conditions: [{ ...condition("Complete", false, 2, begin), lastTransitionTime: "2026-01-01T00:09:00Z" }],
    }),
    breaks: ["S7"],
  },
  "complete, and not all of them are": {
    story: early().status(1, [], {
      conditions: [
        { ...condition("InProgress", false, 2, begin), message: "0 of 8 up to date" },
        { ...condition("Ready", true, 2, begin), message: "7 of 8 objects are up to date" },
      ],
    }),
    breaks: ["S8"],
  },
  "the same image twice": { story: early().stamp(1, "late", "v2").stamp(1, "late", "v2"), breaks: ["S9"] },
  "the same image twice, after a touch": {
    story: early().stamp(1, "late", "v2").touch(1, "late", "again").stamp(1, "late", "v2"),
    breaks: [],
  },
  "a stamp without a version": {
    story: early().stamp(1, "late", "v2", { isUnconditional: true }),
    breaks: ["S10"],
  },
}

for (const [name, { story, breaks }] of Object.entries(cases))
  test(name, () => {
    const found = violationsOf(story.run)
    expect([...new Set(found.map(each => each.split(" ")[0]))], found.join("\n")).toEqual(breaks)
  })
