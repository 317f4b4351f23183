import { expect, test } from "vitest"
import { heldMark, inPlaceAnnotation } from "#core/in-place/names.ts"
import type { KubeObject } from "#runtime/resource.ts"
import { marksFor } from "./strays.ts"

const workload = (annotations: Record<string, string>, more: object = {}): KubeObject => ({
  apiVersion: "apps/v1",
  kind: "Deployment",
  metadata: { name: "web", namespace: "shop", uid: "u", resourceVersion: "7", annotations, ...more },
})
const [held, note] = [{ [heldMark]: "hold" }, { [inPlaceAnnotation]: "note" }]
const before = workload({ ...held, ...note }, { labels: { [heldMark]: "in-place" } })
const marks = { resourceVersion: "7", labels: { [heldMark]: "in-place" }, annotations: { ...held, ...note } }

const cases: Record<string, { now: KubeObject | undefined; writes: object | undefined }> = {
  "replaced by a manifest": { now: workload({ mine: "stays" }), writes: { metadata: marks } },
  "without its label": { now: workload({ ...held, ...note }), writes: { metadata: marks } },
  released: { now: workload({ [inPlaceAnnotation]: "Completed" }), writes: undefined },
  deleted: { now: undefined, writes: undefined },
  "being deleted": { now: workload({}, { deletionTimestamp: "2026-01-01T00:00:00Z" }), writes: undefined },
  "another one of the same name": { now: workload({}, { uid: "other" }), writes: undefined },
  "with its label again": { now: workload({}, { labels: { [heldMark]: "in-place" } }), writes: undefined },
}
for (const [name, { now, writes }] of Object.entries(cases))
  test(`the marks of a workload that left the watch, ${name}`, () => expect(marksFor(before, now)).toEqual(writes))
