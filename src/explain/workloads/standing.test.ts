import { describe, expect, test } from "vitest"
import { operationOf } from "#core/in-place/operation.ts"
import { standingOf } from "./standing.ts"
import { type Given, noteOf, operation, templateOf, v1, v2, v3, workload } from "./test-workloads.ts"

const kinds = ["Deployment", "StatefulSet", "DaemonSet"] as const
const of = (given: Given) => standingOf(workload(given))

describe("a held workload is never complete, whatever its counts say", () => {
  const cases: Record<string, [state: string, note: object | "none"]> = {
    "no controller has taken it up": ["Waiting", "none"],
    "pods are changed": ["InProgress", noteOf("Updating")],
    "agents pull": ["Waiting", noteOf("Pulling")],
    "an image cannot be pulled": ["Waiting", noteOf("ImageUnavailable")],
    "a budget is spent": ["Waiting", noteOf("BudgetSpent")],
    "a pod is not ready": ["Waiting", noteOf("PodNotReady")],
    "a write is refused": ["Stalled", noteOf("Refused")],
    "a write is not granted": ["Stalled", noteOf("Forbidden")],
    "a partition keeps the rest": ["Paused", noteOf("Partitioned")],
    "a pod has failed": ["Stalled", noteOf("UpdateFailed")],
    "it cannot go in place": ["Stalled", noteOf("NotInPlace")],
    "an annotation cannot be read": ["Stalled", noteOf("InvalidAnnotation")],
    "all pods are done": ["InProgress", noteOf("Fencing")],
  }
  for (const kind of kinds)
    for (const [name, [state, note]] of Object.entries(cases))
      test(`${kind}: ${name}`, () => expect(of({ kind, image: v2, note }).state).toBe(state))
})

test("counts in a note may be old, and are left out", () => {
  const note = noteOf("BudgetSpent", "1 of 3 pods updated; 2 pods wait for maxUnavailable")
  expect(of({ image: v2, note })).toEqual({
    state: "Waiting",
    reason: "BudgetSpent",
    message: "2 pods wait for maxUnavailable",
    operation,
    total: 3,
  })
})

test("a note of an earlier hold says nothing", () => {
  expect(of({ image: v2, note: noteOf("Completed", "", { operation: "3-old" }) })).toMatchObject({ reason: "Held" })
})

test("the end of the update before says nothing of a change under the same hold", () => {
  const note = noteOf("UpdateFailed", "web-0: CrashLoop")
  expect(of({ image: v2, note }).state).toBe("Stalled")
  // Back by `aim rollback`, and on to another image.
  for (const image of [v1, v3]) expect(of({ image, note })).toMatchObject({ state: "InProgress", reason: "Held" })
})

test("an update that takes itself back goes on, and one that is not tried again does not", () => {
  const back = operationOf({ hold: { by: "in-place", generation: 4 }, template: templateOf(v1) })
  const note = noteOf("UpdateFailed", "rolls back", { failed: operation, back })
  expect(of({ image: v1, note }).state).toBe("InProgress")
  expect(of({ image: v2, note }).state).toBe("Stalled")
})

test("a hold that was taken away is a rolling update", () => {
  for (const [kind, spec] of [
    ["Deployment", { paused: false }],
    ["StatefulSet", { updateStrategy: { type: "RollingUpdate", rollingUpdate: { partition: 0 } } }],
    ["DaemonSet", { updateStrategy: { type: "RollingUpdate" } }],
  ] as const)
    expect(of({ kind, image: v2, note: noteOf("Updating"), spec })).toMatchObject({
      state: "InProgress",
      reason: "FellBackToRollingUpdate",
    })
})

test("the hold of another part of aim is named", () => {
  const held = (text: string) => of({ note: "none", annotations: { "autoimagemanager.io/held": text } })
  expect(held('{"by":"another","generation":4}')).toMatchObject({ state: "Waiting", message: "it is held by another" })
  expect(held('{"by":"canary","name":"web","generation":4}')).toMatchObject({
    state: "Waiting",
    message: expect.stringContaining("aim status canary/web -n shop"),
  })
})

describe("a workload that is not held", () => {
  test("may have the annotation of long ago, which kubectl rollout undo brings back: without the label it holds nothing", () => {
    const annotations = { "autoimagemanager.io/held": '{"by":"in-place","original":{"paused":false},"generation":2}' }
    expect(of({ annotations })).toMatchObject({ state: "Complete", updated: 3 })
  })

  test("is complete when its own controller is done", () => {
    for (const kind of kinds)
      expect(of({ kind })).toMatchObject({ state: "Complete", reason: "RolledOut", updated: 3, total: 3 })
  })

  test("has the words of the update that brought its template", () => {
    const lastNote = noteOf("Completed", "3 pods updated in place")
    expect(of({ image: v2, lastNote })).toMatchObject({ reason: "Completed", operation })
    expect(of({ image: "registry.example.com/web:9", lastNote })).toMatchObject({ reason: "RolledOut" })
  })

  test("was rolled back, until another image is set", () => {
    const operation = operationOf({ hold: { by: "in-place", generation: 4 }, template: templateOf(v1) })
    const lastNote = noteOf("RolledBack", "3 pods went back", { operation, from: {}, to: {} })
    expect(of({ image: v1, lastNote })).toMatchObject({ state: "RolledBack", message: "3 pods went back" })
    expect(of({ image: v2, lastNote })).toMatchObject({ state: "Complete" })
  })

  test("is under way while counts are behind, with the reason for which it was released", () => {
    const status = { updatedReplicas: 1 }
    expect(of({ status })).toMatchObject({ state: "InProgress", message: "1 of 3 pods updated, 3 available" })
    const lastNote = noteOf("NotInPlace", "spec.containers[web].env: a running pod cannot change it")
    expect(of({ image: v2, lastNote, status })).toMatchObject({ state: "InProgress", reason: "NotInPlace" })
    const ofEnv = { ...lastNote, from: {}, to: {} }
    expect(of({ lastNote: ofEnv, status })).toMatchObject({ state: "InProgress", reason: "NotInPlace" })
    expect(of({ lastNote: ofEnv })).toMatchObject({ state: "Complete", reason: "RolledOut" })
    expect(of({ image: v2, lastNote: noteOf("Released", "by aim release") })).toMatchObject({
      ...{ state: "Complete", reason: "RolledOut" },
      message: "3 pods run the present template; it was a rolling update, Released: by aim release",
    })
  })

  test("counts only for the generation that its controller has observed", () => {
    expect(of({ status: { observedGeneration: 4 } }).state).toBe("NotSeenYet")
  })

  test("is stalled at its deadline, and paused where its owner says so", () => {
    const status = { updatedReplicas: 1 }
    const conditions = [{ type: "Progressing", reason: "ProgressDeadlineExceeded", message: "timed out" }]
    expect(of({ status: { ...status, conditions } })).toMatchObject({
      state: "Stalled",
      reason: "ProgressDeadlineExceeded",
    })
    expect(of({ status, spec: { paused: true } })).toMatchObject({ state: "Paused", reason: "Paused" })
    expect(of({ kind: "StatefulSet", status, strategy: { type: "OnDelete" } })).toMatchObject({ reason: "OnDelete" })
  })

  test("is complete with a partition of its owner's, and says so", () => {
    const strategy = { type: "RollingUpdate", rollingUpdate: { partition: 2 } }
    const status = { updatedReplicas: 1, updateRevision: "web-b" }
    expect(of({ kind: "StatefulSet", strategy, status })).toMatchObject({ state: "Complete", reason: "Partitioned" })
  })
})
