import { expect, test } from "vitest"
import type { Json } from "#cluster-sim/index.ts"
import { formatInstant } from "#lib/instant.ts"
import type { Commit, Run, Sent } from "#test/support/record.ts"
import { failoverViolationsOf } from "./failover.ts"
import { decisionAnnotation } from "./reading.ts"

// Each invariant is shown a history that breaks it, made by hand: a check that never fails is of no use.

const begin = Date.parse("2026-01-01T00:00:00Z")
const [a, b, c] = ["a.example/app:1", "b.example/app:1", "c.example/app:1"]
const digest = (digit: string) => `sha256:${digit.repeat(64)}`

/** One AlternateImageSource, a Deployment with two pods that cannot pull, and a writer that moves them. */
class Story {
  readonly run: Run & { commits: Commit[]; failovers: Sent[] } = {
    seed: 0,
    initial: [],
    commits: [],
    sent: [],
    failovers: [],
    lagMs: 0,
  }
  readonly #objects = new Map<string, Json>()
  #revision = 10
  #now = begin

  constructor(policy: Json = {}) {
    const equivalentRepositories = ["a.example/app", "b.example/app", "c.example/app"]
    const spec = { policy, imageSourceReplacements: [{ equivalentRepositories }] }
    this.put("source", { apiVersion: "x/v1", kind: "AlternateImageSource", metadata: { name: "demo" }, spec })
    const template = { spec: { containers: [{ name: "app", image: a }] } }
    this.put("web", {
      apiVersion: "apps/v1",
      kind: "Deployment",
      metadata: { name: "web", uid: "web" },
      spec: { template },
    })
    this.pod("one").pod("two").later(60)
  }

  later(seconds: number): this {
    this.#now += seconds * 1000
    return this
  }

  put(id: string, object: Json): this {
    const before = this.#objects.get(id)
    const after = { ...object, metadata: { namespace: "shop", ...object.metadata } }
    this.#objects.set(id, after)
    const type = before ? "MODIFIED" : "ADDED"
    this.run.commits.push({
      revision: ++this.#revision,
      place: "",
      type,
      object: after,
      before,
      manager: "",
      at: this.#now,
    })
    return this
  }

  /** A Canary proves a change of the Deployment by another one. */
  trial(): this {
    const owner = { apiVersion: "autoimagemanager.io/v1alpha1", kind: "Canary", name: "web", uid: "canary" }
    const targetRef = { apiVersion: "apps/v1", kind: "Deployment", name: "web" }
    const { apiVersion, kind } = owner
    return this.put("canary", { apiVersion, kind, metadata: { name: "web", uid: "canary" }, spec: { targetRef } }).put(
      "web-abc",
      {
        apiVersion: "apps/v1",
        kind: "Deployment",
        metadata: { name: "web-abc", uid: "web-abc", ownerReferences: [{ ...owner, controller: true }] },
        spec: this.#objects.get("web")!.spec,
      },
    )
  }

  pod(name: string, { namespace = "shop", owner = "web", of = "web", waiting = "ErrImagePull" }: Json = {}): this {
    const ownerReferences = [{ apiVersion: "apps/v1", kind: "Deployment", name: of, uid: owner, controller: true }]
    return this.put(name, {
      apiVersion: "v1",
      kind: "Pod",
      metadata: { name, namespace, uid: name, ownerReferences },
      spec: { containers: [{ name: "app", image: a }] },
      status: { containerStatuses: [{ name: "app", restartCount: 0, state: { waiting: { reason: waiting } } }] },
    })
  }

  edit(id: string, change: (object: Json) => void): this {
    const object = structuredClone(this.#objects.get(id)!)
    change(object)
    return this.put(id, object)
  }

  move(id: string, to: string, { at = this.#now, isUnconditional = false } = {}): this {
    const path = `/api/v1/namespaces/shop/pods/${id}`
    const metadata = isUnconditional ? {} : { uid: id, resourceVersion: "1" }
    this.run.failovers.push({ process: 1, method: "PATCH", path, body: { metadata }, at, after: this.#revision })
    return this.edit(id, object => {
      const { containers } = (object.spec.template ?? object).spec
      const decision = { from: containers[0].image, to, by: "alternateimagesource/demo", at: formatInstant(at) }
      object.metadata.annotations = { [decisionAnnotation]: JSON.stringify(decision) }
      containers[0].image = to
    })
  }

  runs(id: string, image: string): this {
    return this.edit(id, object => {
      object.status.containerStatuses = [
        { name: "app", imageID: `x@${image}`, containerID: "1", state: { running: {} } },
      ]
    })
  }

  tells(newImage: string): this {
    return this.edit("source", object => {
      object.status = { targetsAvailable: [{ switches: [{ oldImage: a, newImage }] }] }
    })
  }
}

const cases: Record<string, [Story, string[]]> = {
  "pods that are sent on as they should": [
    new Story().move("one", b).move("two", b).tells(b).later(90).move("one", c).move("two", c).tells(c),
    [],
  ],
  "a repository that the spec does not name": [new Story().move("one", "evil.example/app:1"), ["S11"]],
  "another tag": [new Story().move("one", "b.example/app:2"), ["S11"]],
  "a repository that is disabled": [new Story({ disabledRepositories: ["b.example/app"] }).move("one", b), ["S11"]],
  "other bits than were known": [new Story().runs("two", digest("1")).move("one", b).runs("one", digest("2")), ["S11"]],
  "other bits, which the policy allows": [
    new Story({ requireSameDigest: "Never" }).runs("two", digest("1")).move("one", b).runs("one", digest("2")),
    [],
  ],
  "a pod that runs": [new Story().runs("one", digest("1")).move("one", b), ["S12"]],
  "a pod that waits for something else": [
    new Story().pod("three", { waiting: "PodInitializing" }).move("three", b),
    ["S12"],
  ],
  "a pod of a namesake": [new Story().pod("three", { owner: "web-0" }).move("three", b), ["S12"]],
  "a pod of a run of a Canary": [
    new Story().trial().pod("three", { owner: "web-abc", of: "web-abc" }).move("three", b),
    [],
  ],
  "a pod of a run that was given up": [
    new Story()
      .trial()
      .pod("three", { owner: "web-abc", of: "web-abc" })
      .edit("web-abc", ({ metadata }) => {
        metadata.labels = { "autoimagemanager.io/canary-run-ended": "true" }
      })
      .later(60)
      .move("three", b),
    ["S32"],
  ],
  "a failed signature check": [
    new Story()
      .edit("one", ({ status }) => {
        status.containerStatuses[0].state.waiting.message = "signature verification failed"
      })
      .move("one", b),
    ["S12"],
  ],
  "a step before the last has had its time": [new Story().move("one", b).later(30).move("one", c), ["S13"]],
  "another step that arrives late": [
    (() => {
      const at = begin + 60_000
      return new Story().move("one", b).later(90).move("one", c).later(1).move("two", b, { at })
    })(),
    [],
  ],
  "a template that goes back": [
    new Story({ apply: "Template" })
      .move("web", b)
      .later(90)
      .edit("one", ({ spec }) => {
        spec.containers[0].image = b
      })
      .edit("two", ({ spec }) => {
        spec.containers[0].image = b
      })
      .move("web", a),
    ["S13"],
  ],
  "a pod of another namespace": [
    new Story().pod("three", { namespace: "bank" }).move("three", b),
    ["S11", "S12", "S14"],
  ],
  "a template for the sake of a few": [
    new Story({ apply: "Template", templateShare: "60%" }).runs("two", digest("1")).move("web", b),
    ["S15"],
  ],
  "a write whatever has happened since": [new Story().move("one", b, { isUnconditional: true }), ["S10"]],
  "a repository that no pod was sent to": [
    new Story().edit("source", object => {
      object.status = { targetsAvailable: [{ incident: { working: "b.example/app" } }] }
    }),
    ["told"],
  ],
  "a switch that was never made": [new Story().tells(b), ["told"]],
}

for (const [name, [story, breaks]] of Object.entries(cases))
  test(name, () => {
    const found = failoverViolationsOf(story.run)
    expect([...new Set(found.map(each => each.split(" ")[0]))], found.join("\n")).toEqual(breaks)
  })
