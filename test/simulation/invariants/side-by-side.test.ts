import { expect, test } from "vitest"
import type { Json } from "#cluster-sim/index.ts"
import { formatInstant } from "#lib/instant.ts"
import type { Commit, Run } from "#test/support/record.ts"
import { decisionAnnotation } from "./reading.ts"
import { sideBySideViolationsOf } from "./side-by-side.ts"

// The invariant is shown histories that break it, made by hand, and some that look alike and do not.

const begin = Date.parse("2026-01-01T00:00:00Z")
const [one, two, oneElsewhere, twoElsewhere] = ["a.io/app:1", "a.io/app:2", "b.io/app:1", "b.io/app:2"]

/** A Deployment that is held for an update in place, an AlternateImageSource, and one pod that has not started. */
class Story {
  readonly run: Run & { commits: Commit[] } = { seed: 0, initial: [], commits: [], sent: [], lagMs: 0 }
  #pod: Json = {
    apiVersion: "v1",
    kind: "Pod",
    metadata: { name: "p", namespace: "n", uid: "p", annotations: {}, ownerReferences: [] },
    spec: { containers: [{ name: "app", image: one }] },
    status: {},
  }
  #now = begin

  constructor(held: Json | null = { by: "in-place", generation: 3 }) {
    this.#commit({ apiVersion: "x/v1", kind: "AlternateImageSource", metadata: { name: "demo", namespace: "n" } })
    const owner = { apiVersion: "apps/v1", kind: "Deployment", name: "web", uid: "web", controller: true }
    this.#pod.metadata.ownerReferences = [owner]
    const marks = held && {
      labels: { [mark("held")]: "in-place" },
      annotations: { [mark("held")]: JSON.stringify(held) },
    }
    this.#commit({ ...owner, metadata: { name: "web", namespace: "n", uid: "web", ...marks }, spec: {} })
    this.#commit(this.#pod)
  }

  #commit(object: Json, before?: Json): this {
    const revision = this.run.commits.length + 10
    const type = before ? "MODIFIED" : "ADDED"
    this.run.commits.push({ revision, place: "", type, object, before, manager: "", at: this.#now } as Commit)
    return this
  }

  #edit(image: string, annotation: string, value: Json, status: Json = {}): this {
    const before = this.#pod
    this.#pod = structuredClone(before)
    this.#pod.metadata.annotations[annotation] = JSON.stringify(value)
    this.#pod.spec.containers[0].image = image
    this.#pod.status = status
    return this.#commit(this.#pod, before)
  }

  later(seconds: number): this {
    this.#now += seconds * 1000
    return this
  }

  started(): this {
    const before = this.#pod
    this.#pod = { ...before, status: { containerStatuses: [{ name: "app", containerID: "c1" }] } }
    return this.#commit(this.#pod, before)
  }

  updates(to: string, more: Json = {}): this {
    const { image } = this.#pod.spec.containers[0]
    const value = { operation: "3-ab", from: { app: image }, to: { app: to }, was: { app: { id: "" } }, ...more }
    return this.#edit(to, mark("in-place"), { ...value, at: formatInstant(this.#now) }, this.#pod.status)
  }

  failsOver(to: string, was: string): this {
    const { image: from } = this.#pod.spec.containers[0]
    const decision = { by: "alternateimagesource/demo", from, to, was: { app: was }, at: formatInstant(this.#now) }
    return this.#edit(to, decisionAnnotation, decision, this.#pod.status)
  }
}

const mark = (name: string) => `autoimagemanager.io/${name}`

const cases: Record<string, [story: Story, isBroken: boolean]> = {
  "a failover of a pod that is being updated": [new Story().updates(two).later(9).failsOver(twoElsewhere, two), true],
  "after the pod went back": [new Story().updates(one, { failed: "x" }).later(9).failsOver(oneElsewhere, one), false],
  "after the Deployment was released": [new Story(null).updates(two).later(9).failsOver(twoElsewhere, two), false],
  "by a mark of an earlier hold": [
    new Story().updates(two, { operation: "2-ab" }).later(9).failsOver(twoElsewhere, two),
    false,
  ],
  "once the new container has started": [
    new Story().updates(two).started().later(9).failsOver(twoElsewhere, two),
    false,
  ],
  "an update of a pod that is being failed over": [
    new Story().failsOver(oneElsewhere, one).later(9).updates(two),
    true,
  ],
  "an update of one that has started": [
    new Story().failsOver(oneElsewhere, one).started().later(9).updates(two),
    false,
  ],
  "an update of one that has not started for a minute": [
    new Story().failsOver(oneElsewhere, one).later(61).updates(two),
    false,
  ],
  "an update to the image that a pod stands for": [
    new Story().failsOver(oneElsewhere, one).started().later(99).updates(one),
    true,
  ],
}

for (const [name, [{ run }, isBroken]] of Object.entries(cases))
  test(name, () => {
    const found = sideBySideViolationsOf(run)
    expect(found.length > 0, found.join("\n")).toBe(isBroken)
    for (const each of found) expect(each).toMatch(/^S32 pod n\/p app/)
  })
