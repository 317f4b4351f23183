import { expect, test } from "vitest"
import { inPlaceAnnotation, strategyAnnotation } from "#core/in-place/names.ts"
import { updateReasons } from "./reasons.ts"
import { markOf, noteOf, operation, pod, revision, sight, templateOf, v1, v2 } from "./test-workloads.ts"
import { whyPodChanged, whyUpdate } from "./why.ts"

const waiting = {
  image: v2,
  status: { containerStatuses: [{ name: "web", state: { waiting: { reason: "ImagePullBackOff" } } }] },
}
const pods = [
  pod("web-0", { image: v2, mark: markOf() }),
  pod("web-1", { ...waiting, isReady: false, mark: markOf(), node: "node-1" }),
  pod("web-2", { node: "node-2" }),
]

test("an update under way: the operation, the images, the reason with its meaning, and the pods by their state", () => {
  const note = noteOf("UpdateFailed", "1 of 3 pods updated; web-1: ImagePullFailed, container web: ImagePullBackOff")
  const { reason, sentences, since, isPressing } = whyUpdate(sight({ image: v2, note }, { pods }))!
  expect({ reason, isPressing, since }).toEqual({
    reason: "UpdateFailed",
    isPressing: true,
    since: Date.parse("2026-01-01T00:05:00Z"),
  })
  expect(sentences).toEqual([
    `Deployment shop/web is held for an update in place (operation ${operation}).`,
    `Container web goes from ${v1} to ${v2}.`,
    "web-1: ImagePullFailed, container web: ImagePullBackOff.",
    updateReasons.UpdateFailed,
    "Updated: 1 pod: web-0 on node-0.",
    "Not touched yet: 1 pod: web-2 on node-2.",
    "Failed: 1 pod: web-1 on node-1 (ImagePullFailed: container web: ImagePullBackOff).",
    "It does not go on without you: aim rollback deploy/web -n shop sets the template before; aim release deploy/web -n shop gives it to the Deployment controller.",
  ])
})

test("a pod of a set counts as new by the label of its revision, once it is not held", () => {
  for (const kind of ["StatefulSet", "DaemonSet"] as const) {
    const revisions = [revision(kind, 1, templateOf(v1)), revision(kind, 2, templateOf(v2))]
    const own = [
      pod("web-0", { kind, image: v2, revision: 2 }),
      pod("web-1", { kind, image: v2, revision: 2, isReady: false }),
      pod("web-2", { kind }),
    ]
    const status = { updatedReplicas: 2, updatedNumberScheduled: 2 }
    const found = whyUpdate(sight({ kind, image: v2, status }, { pods: own, revisions }))!
    expect(found.sentences.slice(-3)).toEqual([
      "Updated: 1 pod: web-0 on node-0.",
      "New, and not ready yet: 1 pod: web-1 on node-0.",
      "Not touched yet: 1 pod: web-2 on node-0.",
    ])
  }
})

test("a workload that has nothing to do with updates in place has no answer", () => {
  expect(whyUpdate(sight({ annotations: { [strategyAnnotation]: "Recreate" } }))).toBeUndefined()
})

test("a pod shows what was done to it", () => {
  const of = (mark?: object) => whyPodChanged(pod("web-0", mark ? { mark } : {}))
  expect(of()).toEqual([])
  expect(of(markOf())).toEqual([
    `Operation ${operation} of an update in place restarted web from ${v1} to ${v2} at 2026-01-01T00:05:00Z.`,
  ])
  expect(of(markOf({ from: { web: v2 }, to: { web: v1 }, failed: "CrashLoop" }))).toEqual([
    `Operation ${operation} of an update in place had failed here (CrashLoop): it took back web from ${v2} to ${v1} at 2026-01-01T00:05:00Z.`,
  ])
  expect(of(markOf({ from: {}, to: {} }))[0]).toContain("changed its labels or annotations")
  expect(pod("web-0").metadata.annotations?.[inPlaceAnnotation]).toBeUndefined()
})
