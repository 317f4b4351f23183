import { describe, expect, test } from "vitest"
import { inPlaceAnnotation, strategyAnnotation } from "#core/in-place/names.ts"
import { operationOf } from "#core/in-place/operation.ts"
import type { KubeObject } from "#runtime/resource.ts"
import { updateReasons } from "./reasons.ts"
import {
  type Given,
  markOf,
  noteOf,
  operation,
  pod,
  revision,
  sight,
  templateOf,
  v1,
  v2,
  v3,
} from "./test-workloads.ts"
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

test("a pod whose node is lost has not failed: it is waited for, and the node is named", () => {
  const mark = markOf({ at: "2026-01-01T00:00:00Z" })
  const own = [pod("web-1", { image: v2, isReady: false, mark, node: "node-1" })]
  const now = Date.parse("2026-01-01T02:00:00Z")
  const said = (nodes?: KubeObject[]) =>
    whyUpdate(sight({ image: v2, note: noteOf("Updating") }, { pods: own, nodes, now }))!.sentences.filter(each =>
      each.includes("web-1"),
    )
  const node = (status: string) =>
    ({ metadata: { name: "node-1" }, status: { conditions: [{ type: "Ready", status }] } }) as KubeObject
  expect(said([node("Unknown")])).toEqual([
    "Restarting, and not proven yet: 1 pod: web-1 on node-1 (node node-1 is not ready, and reports nothing).",
  ])
  for (const nodes of [undefined, [node("True")]])
    expect(said(nodes)).toEqual([expect.stringMatching(/^Failed: 1 pod: web-1 on node-1 \(Timeout: not ready/)])
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

describe("what the note says of the images", () => {
  const changed = (given: Given) =>
    whyUpdate(sight(given))!.sentences.filter(sentence => sentence.startsWith("Container"))
  const back = { from: { web: v2 }, to: { web: v1 }, isTakenBack: true }
  /** The note of a rollback has the operation that goes back. */
  const there = operationOf({ hold: { by: "in-place", generation: 4 }, template: templateOf(v1) })
  const rows: Record<string, [given: Given, expected: string[]]> = {
    "they went there": [{ image: v2, lastNote: noteOf("Completed") }, [`went from ${v1} to ${v2}`]],
    "their owner took them back": [{ lastNote: noteOf("Completed", "", back) }, [`went back from ${v2} to ${v1}`]],
    "aim takes them back": [
      { note: noteOf("UpdateFailed", "", { failed: operation, back: "4-x" }) },
      [`goes back from ${v2} to ${v1}`],
    ],
    "aim took them back": [
      { lastNote: noteOf("RolledBack", "", { operation: there, failed: operation, back: there }) },
      [`went back from ${v2} to ${v1}`],
    ],
    "nothing, where the template is another one since": [{ image: v3, lastNote: noteOf("Completed") }, []],
  }
  for (const [name, [given, expected]] of Object.entries(rows))
    test(name, () => expect(changed(given)).toEqual(expected.map(words => `Container web ${words}.`)))
})

test("an image that cannot be pulled: how to go back", () => {
  const { sentences } = whyUpdate(sight({ image: v2, note: noteOf("ImageUnavailable", "not on 1 node") }))!
  expect(sentences.at(-1)).toContain("If the image is wrong, set another one: aim rollback deploy/web -n shop")
})

test("of a change that no running pod can get, none is updated", () => {
  const template = templateOf(v1, { hostname: "a" })
  const { sentences } = whyUpdate(
    sight({ template, note: noteOf("NotInPlace", "spec.hostname", { from: {}, to: {} }) }),
  )!
  expect(sentences).toContain("Not touched yet: 3 pods: web-0 on node-0, web-1 on node-1, web-2 on node-2.")
})

test("over since the last pod was changed, under way since the first", () => {
  const at = (minute: number) => `2026-01-01T00:0${minute}:00Z`
  const own = [1, 2].map(minute => pod(`web-${minute}`, { image: v2, mark: markOf({ at: at(minute) }) }))
  const since = (given: Given) => whyUpdate(sight({ image: v2, ...given }, { pods: own }))!.since
  expect(since({ note: noteOf("Updating") })).toBe(Date.parse(at(1)))
  expect(since({ lastNote: noteOf("Completed") })).toBe(Date.parse(at(2)))
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
