import { describe, expect, test } from "vitest"
import {
  type HistoryEntry,
  maxHistory,
  maxHistoryImageCharacters,
  type Operation,
  retryAnnotation,
  rollbackAnnotation,
  ServiceImage,
  type ServiceImageStatus,
} from "#api/v1alpha1/serviceimage/index.ts"
import { currentOperation, historyOf, isInProgress, lastGoodImage, recordOperation } from "./operation.ts"

const [v1, v2] = ["shop/web:1", "shop/web:2"]
const operation = (fields: Partial<Operation> = {}): Operation => ({
  id: "g1",
  startedAt: "2026-01-01T00:00:00Z",
  images: { "": v1 },
  phase: "Complete",
  total: 3,
  upToDate: 3,
  failed: 0,
  ...fields,
})
const ended = (fields: Partial<HistoryEntry> = {}): HistoryEntry => ({
  ...operation(),
  endedAt: "2026-01-01T01:00:00Z",
  ...fields,
})

test("a tier named like something every object inherits is a tier like any other", () => {
  const recorded = operation({ images: { constructor: v1 } })
  expect(currentOperation(serviceImage({ recorded }), 0).images).toEqual({ "": v1 })
  expect(lastGoodImage([ended({ images: { "": v1 } })], "constructor")).toBeUndefined()
  expect(lastGoodImage([ended(), ended({ images: { constructor: v2 } })], "constructor")).toBe(v2)
})

type Given = { image?: string; generation?: number; recorded?: Operation; history?: HistoryEntry[]; annotations?: Record<string, string> } // biome-ignore format: a row
function serviceImage({ image = v1, generation = 1, recorded, history = [], annotations = {} }: Given): ServiceImage {
  const status = { observedGeneration: generation, operation: recorded, history } as unknown as ServiceImageStatus
  return {
    apiVersion: ServiceImage.apiVersion,
    kind: "ServiceImage",
    metadata: { name: "web", generation, annotations },
    spec: ServiceImage.spec.parse({ target: { apiVersion: "a.b/v1", kind: "C" }, defaultImage: image }),
    ...(recorded && { status }),
  }
}
const digest = `@sha256:${"a".repeat(64)}`

describe("the operation a spec asks for", () => {
  const cases: Record<string, { given: Given; id: string; phase: string }> = {
    "is a new one at first": { given: {}, id: "g1", phase: "InProgress" },
    "stays while the images do": { given: { generation: 7, recorded: operation() }, id: "g1", phase: "Complete" },
    "also in another writing": {
      given: { generation: 7, image: "docker.io/shop/web:1", recorded: operation() }, id: "g1", phase: "Complete",
    },
    "also where the tag was resolved": {
      given: { generation: 7, recorded: operation({ images: { "": `${v1}${digest}` } }) }, id: "g1", phase: "Complete",
    },
    "is new with another image": { given: { generation: 2, image: v2, recorded: operation() }, id: "g2", phase: "InProgress" },
    "is new when tiers come or go": {
      given: { generation: 2, recorded: operation({ images: { "": v1, early: v1 } }) }, id: "g2", phase: "InProgress",
    },
    "is taken back when an annotation asks for that": {
      given: { recorded: operation(), annotations: { [rollbackAnnotation]: "g1" } }, id: "g1", phase: "RollingBack",
    },
    "but not when the annotation names another operation": {
      given: { recorded: operation(), annotations: { [rollbackAnnotation]: "g0" } }, id: "g1", phase: "Complete",
    },
    "nor twice": {
      given: { recorded: operation({ phase: "RolledBack" }), annotations: { [rollbackAnnotation]: "g1" } }, id: "g1", phase: "RolledBack",
    },
    "is tried again under another name": {
      given: { recorded: operation({ phase: "RolledBack" }), annotations: { [retryAnnotation]: "g1" } }, id: "g1_2", phase: "InProgress",
    },
    "and again": {
      given: { recorded: operation({ id: "g1_2", phase: "RolledBack" }), annotations: { [retryAnnotation]: "g1_2" } }, id: "g1_3", phase: "InProgress",
    },
    "not while it is being carried out": {
      given: { recorded: operation({ phase: "Halted" }), annotations: { [retryAnnotation]: "g1" } }, id: "g1", phase: "Halted",
    },
    "never has a name that another one had: its approvals are not for this": {
      given: { generation: 2, image: v2, recorded: operation(), history: [ended({ id: "g2" })] }, id: "g2_2", phase: "InProgress",
    },
  } // biome-ignore format: rows
  for (const [name, { given, id, phase }] of Object.entries(cases))
    test(name, () => expect(currentOperation(serviceImage(given), 0)).toMatchObject({ id, phase }))
})

test("an unobserved generation counts as in progress, and so does an operation that is being taken back", () => {
  const is = (phase: Operation["phase"], observed = 1) => {
    const { metadata, status } = serviceImage({ recorded: operation({ phase }) })
    return isInProgress({ metadata, status: { ...status!, observedGeneration: observed } })
  }
  expect((["InProgress", "RollingBack"] as const).map(phase => is(phase))).toEqual([true, true])
  expect((["Complete", "Halted", "RolledBack"] as const).map(phase => is(phase))).toEqual([false, false, false])
  expect(is("Complete", 0)).toBe(true)
})

test("the last good image of a tier is of the newest operation that completed there", () => {
  const history = [
    ended({ id: "g4", phase: "Superseded", images: { "": "web:4" } }),
    ended({ id: "g3", phase: "RolledBack", images: { "": "web:3" } }),
    ended({ id: "g2", images: { "": "web:2" } }),
    ended({ id: "g1", images: { "": "web:1", early: "web:0" } }),
  ]
  expect([lastGoodImage(history, ""), lastGoodImage(history, "early"), lastGoodImage(history, "other")]).toEqual(["web:2", "web:0", undefined]) // biome-ignore format: a row
})

test("the history keeps the newest, and the oldest go without their images when these get long", () => {
  const images = { "": "i".repeat(maxHistoryImageCharacters / 3) }
  let history: HistoryEntry[] = []
  for (let n = 1; n <= maxHistory + 2; n++) history = recordOperation(history, ended({ id: `g${n}`, images }))
  expect(history).toHaveLength(maxHistory)
  expect(history[0]!.id).toBe(`g${maxHistory + 2}`)
  expect(history.map(entry => Object.keys(entry.images).length).slice(0, 4)).toEqual([1, 1, 1, 0])
})

test("the failures that an earlier process knew are as old as its status", () => {
  const managedFields = [
    { manager: "kubectl", time: "2026-01-01T00:05:00Z" },
    { manager: "aim", subresource: "status", time: "2026-01-01T00:02:00Z" },
  ]
  const rules = { operation: "g1", tiers: [] }
  const known = (recorded: Operation) => {
    const found = serviceImage({ recorded })
    return historyOf({ ...found, metadata: { ...found.metadata, managedFields } as never }, rules).cleanAt
  }
  expect(known(operation())).toBe(Date.parse("2026-01-01T00:02:00Z"))
  expect(known(operation({ failed: 1 }))).toBeUndefined()
  expect(known(operation({ id: "g0" }))).toBeUndefined()
  expect(historyOf(serviceImage({ recorded: operation() }), rules).cleanAt).toBeUndefined()
})
