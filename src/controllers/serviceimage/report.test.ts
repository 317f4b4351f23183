import { expect, test } from "vitest"
import { ServiceImage, type ServiceImageStatus } from "#api/v1alpha1/serviceimage/index.ts"
import { storyOf, whenToReport } from "./report.ts"

const condition = (type: "Complete" | "Stalled", status: "True" | "False", reason: string, message = "") =>
  ({
    type,
    status,
    reason,
    message,
    observedGeneration: 1,
    lastTransitionTime: "2026-01-01T00:00:00Z",
  }) as ServiceImageStatus["conditions"][number]

const status = (more: Partial<ServiceImageStatus> = {}): ServiceImageStatus => ({
  observedGeneration: 1,
  conditions: [condition("Complete", "False", "RollingOut", "1 of 9"), condition("Stalled", "False", "NotStalled")],
  progress: "1/9",
  currentPriority: 0,
  tierStatus: [],
  unmatched: 0,
  lostPods: 0,
  history: [],
  electionID: "",
  inflight: [],
  operation: {
    id: "g1",
    startedAt: "2026-01-01T00:00:00Z",
    images: { "": "shop/web:2" },
    phase: "InProgress",
    total: 0,
    upToDate: 0,
    failed: 0,
  },
  ...more,
})

const serviceImage: ServiceImage = {
  apiVersion: ServiceImage.apiVersion,
  kind: "ServiceImage",
  metadata: { name: "web" },
  spec: ServiceImage.spec.parse({ target: { apiVersion: "example.com/v1", kind: "Web" }, defaultImage: "shop/web:2" }),
}

test("nothing new is not written, whatever order the server returns its keys in", () => {
  const { conditions, ...rest } = status()
  expect(whenToReport({ ...rest, conditions } as ServiceImageStatus, status(), 0)).toBe("Never")
  expect(whenToReport({ conditions, ...rest } as ServiceImageStatus, status(), 0)).toBe("Never")
})

test("counts alone wait until two seconds after the last report; a new word does not wait", () => {
  const counts = status({
    progress: "2/9",
    conditions: [condition("Complete", "False", "RollingOut", "2 of 9"), condition("Stalled", "False", "NotStalled")],
  })
  expect(whenToReport(status(), counts, 1000)).toBe(3000)
  const word = status({
    conditions: [condition("Complete", "False", "Soaking"), condition("Stalled", "False", "NotStalled")],
  })
  expect(whenToReport(status(), word, 1000)).toBe(0)
  expect(whenToReport(status(), status({ currentPriority: 1 }), 1000)).toBe(0)
  expect(whenToReport(undefined, status(), undefined)).toBe(0)
})

test("the story has its turning points and no more", () => {
  const reasons = (before: ServiceImageStatus | undefined, next: ServiceImageStatus) =>
    storyOf({ ...serviceImage, ...(before && { status: before }) }, next).map(({ type, reason }) => `${type} ${reason}`)
  expect(reasons(undefined, status())).toEqual(["Normal RollingOut"])
  expect(reasons(status(), status({ progress: "5/9" }))).toEqual([])
  const halted = status({
    conditions: [condition("Complete", "False", "AllFailed"), condition("Stalled", "True", "AllFailed")],
  })
  expect(reasons(status(), halted)).toEqual(["Warning AllFailed"])
  expect(reasons(halted, halted)).toEqual([])
  const complete = status({
    conditions: [condition("Complete", "True", "AllUpToDate"), condition("Stalled", "False", "NotStalled")],
  })
  expect(reasons(halted, complete)).toEqual(["Normal AllUpToDate"])
})
