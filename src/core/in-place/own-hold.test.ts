import { describe, expect, test } from "vitest"
import { targetReader } from "../workloads/target-reader.ts"
import type { Strategy } from "./names.ts"

// The hold that a write of aim's own carries, and what is read of one, through the reader of a ServiceImage's targets.

const workload = (kind: string) => targetReader({ kind, image: { container: "app" }, health: "" })
const metadata = { name: "a", namespace: "n", uid: "u", resourceVersion: "7", generation: 2 }
const template = (image: string) => ({ spec: { containers: [{ name: "app", image }] } })
const leftHold = { annotations: { "autoimagemanager.io/held": "{}" } }
const held = { ...leftHold, labels: { "autoimagemanager.io/held": "in-place" } }

describe("a stamp that holds", () => {
  const asked = { annotations: { "autoimagemanager.io/update-strategy": "InPlaceIfPossible" } }
  const hold = '{"by":"in-place","original":{"paused":false},"generation":2}'
  const stop = { held: hold, label: "in-place", paused: true }
  type Held = { kind?: string; metadata?: object; spec?: object; strategy?: Strategy; writes: object }
  const rows: Record<string, Held> = {
    "a tier that asks": {
      strategy: "InPlaceOnly",
      writes: { ...stop, strategy: "InPlaceOnly" },
    },
    "a workload that asks itself": { metadata: asked, writes: stop },
    "both ask the same": { metadata: asked, strategy: "InPlaceIfPossible", writes: stop },
    "the tier overrules the workload": {
      metadata: asked,
      strategy: "InPlaceOnly",
      writes: { ...stop, strategy: "InPlaceOnly" },
    },
    "neither asks": { writes: {} },
    "a tier that replaces pods": { strategy: "Recreate", writes: {} },
    "a tier that replaces pods of a workload that asks": {
      metadata: asked,
      strategy: "Recreate",
      writes: { strategy: "Recreate" },
    },
    "an annotation of nonsense": {
      metadata: { annotations: { "autoimagemanager.io/update-strategy": "yes" } },
      writes: {},
    },
    "held already: the hold stays as it is": {
      metadata: held,
      spec: { paused: true },
      strategy: "InPlaceOnly",
      writes: { strategy: "InPlaceOnly" },
    },
    "held, and to be replaced: the stamp does not release": {
      metadata: { ...held, annotations: { ...held.annotations, ...asked.annotations } },
      spec: { paused: true },
      strategy: "Recreate",
      writes: { strategy: "Recreate" },
    },
    "the annotation of a hold of long ago": {
      metadata: leftHold,
      strategy: "InPlaceOnly",
      writes: { ...stop, strategy: "InPlaceOnly" },
    },
    "paused by its owner": { spec: { paused: true }, strategy: "InPlaceOnly", writes: { strategy: "InPlaceOnly" } },
    "a StatefulSet": {
      kind: "StatefulSet",
      spec: { updateStrategy: { type: "RollingUpdate", rollingUpdate: { partition: 0, maxUnavailable: "50%" } } },
      strategy: "InPlaceOnly",
      writes: {
        strategy: "InPlaceOnly",
        label: "in-place",
        held: '{"by":"in-place","original":{"type":"RollingUpdate","rollingUpdate":{"partition":0,"maxUnavailable":"50%"}},"generation":2}',
        update: { type: "RollingUpdate", rollingUpdate: { partition: 2_147_483_647 } },
      },
    },
    "a StatefulSet with a partition of its owner's": {
      kind: "StatefulSet",
      spec: { updateStrategy: { type: "RollingUpdate", rollingUpdate: { partition: 1 } } },
      strategy: "InPlaceOnly",
      writes: { strategy: "InPlaceOnly" },
    },
    "a StatefulSet of which its owner replaces the pods": {
      kind: "StatefulSet",
      spec: { updateStrategy: { type: "OnDelete" } },
      metadata: asked,
      writes: {},
    },
    "a DaemonSet": {
      kind: "DaemonSet",
      spec: { updateStrategy: { type: "RollingUpdate", rollingUpdate: { maxUnavailable: 2, maxSurge: 0 } } },
      metadata: asked,
      writes: {
        label: "in-place",
        held: '{"by":"in-place","original":{"type":"RollingUpdate","rollingUpdate":{"maxUnavailable":2,"maxSurge":0}},"generation":2}',
        update: { type: "OnDelete" },
      },
    },
    "a DaemonSet of which its owner replaces the pods": {
      kind: "DaemonSet",
      spec: { updateStrategy: { type: "OnDelete" } },
      strategy: "InPlaceOnly",
      writes: { strategy: "InPlaceOnly" },
    },
  }
  for (const [name, { kind = "Deployment", metadata: more, spec, strategy, writes }] of Object.entries(rows))
    test(name, () => {
      const object = { metadata: { ...metadata, ...more }, spec: { template: template("shop/web:1"), ...spec } }
      const reader = workload(kind)
      const { body } = reader.patchFor(reader.read(object as never), "shop/web:2", { note: "x" }, { strategy }) as {
        body: {
          metadata: { annotations: Record<string, string>; labels?: Record<string, string> }
          spec: { paused?: boolean; updateStrategy?: object }
        }
      }
      const { annotations, labels } = body.metadata
      const written = {
        strategy: annotations["autoimagemanager.io/update-strategy"],
        held: annotations["autoimagemanager.io/held"],
        label: labels?.["autoimagemanager.io/held"],
        paused: body.spec.paused,
        update: body.spec.updateStrategy,
      }
      expect(written).toEqual({
        strategy: undefined,
        held: undefined,
        label: undefined,
        paused: undefined,
        update: undefined,
        ...writes,
      })
      expect(annotations.note).toBe("x")
      expect(body.spec).toMatchObject({ template: { spec: { containers: [{ name: "app", image: "shop/web:2" }] } } })
    })
})

describe("what keeps an update in place", () => {
  const note = (more: object) =>
    JSON.stringify({
      operation: "2-ab",
      reason: "BudgetSpent",
      message: "1 of 3",
      touched: {},
      from: {},
      to: { app: "shop/web:2" },
      ...more,
    })
  const annotated = (text: string, hold = '{"by":"in-place","generation":2}') => ({
    labels: held.labels,
    annotations: { "autoimagemanager.io/held": hold, "autoimagemanager.io/in-place": text },
  })
  const read = (more: object) =>
    workload("Deployment").read({
      metadata: { ...metadata, ...more },
      spec: { template: template("shop/web:2") },
    } as never).inPlace?.blocked
  test("is read from the record of this hold", () =>
    expect(read(annotated(note({})))).toEqual({ reason: "BudgetSpent", message: "1 of 3" }))
  test("not from one of an earlier hold", () => expect(read(annotated(note({ operation: "1-ab" })))).toBeUndefined())
  test("not from one about another image", () =>
    expect(read(annotated(note({ to: { app: "shop/web:1" } })))).toBeUndefined())
  test("not once the workload is released", () =>
    expect(read({ annotations: annotated(note({})).annotations })).toBeUndefined())
  test("not while it goes on", () => expect(read(annotated(note({ reason: "Updating" })))).toBeUndefined())
  test("in letters that a terminal shows", () =>
    expect(read(annotated(note({ message: "a\u001b[2Jb" })))?.message).toBe("a?[2Jb"))

  test("an image that was taken back is known until another record is written", () => {
    const failed = { reason: "RolledBack", failed: "2-ab", to: { app: "shop/web:3" } }
    const text = { annotations: { "autoimagemanager.io/in-place": note(failed) } }
    const object = { metadata: { ...metadata, ...text }, spec: { template: template("shop/web:2") } }
    expect(workload("Deployment").read(object as never).inPlace?.takenBack).toEqual({
      image: "shop/web:3",
      message: "1 of 3",
    })
  })
})
