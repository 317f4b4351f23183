import { expect, test } from "vitest"
import { ownUnavailable, unavailableOf } from "./budget.ts"
import { settingAnnotations } from "./names.ts"
import { parseSettings, type Settings } from "./settings.ts"

const own = (kind: Parameters<typeof ownUnavailable>[0], maxUnavailable: unknown, replicas: number) =>
  ownUnavailable(kind, maxUnavailable === undefined ? undefined : { rollingUpdate: { maxUnavailable } }, replicas)

test("a Deployment: a share is at least one pod, and a single pod is not stopped without being asked for", () => {
  expect([10, 3, 1].map(replicas => own("Deployment", undefined, replicas))).toEqual([2, 1, 0])
  expect(own("Deployment", 0, 3)).toBe(0)
  expect(own("Deployment", 5, 3)).toBe(3)
  expect(ownUnavailable("Deployment", { type: "Recreate" }, 3)).toBe(3)
})

test("a StatefulSet: one pod, or a share that rounds down and is at least one", () => {
  expect([undefined, 2, "10%", "50%"].map(value => own("StatefulSet", value, 7))).toEqual([1, 2, 1, 3])
})

test("a DaemonSet: one pod, or a share that rounds up", () => {
  expect([undefined, 0, 2, "10%", "50%"].map(value => own("DaemonSet", value, 7))).toEqual([1, 0, 2, 1, 4])
})

test("the annotation makes it smaller, and decides alone where there is none", () => {
  const settings = (text: string): Settings => {
    const parsed = parseSettings({ [settingAnnotations.maxUnavailable]: text })
    if (!parsed.ok) throw new Error(parsed.problem)
    return parsed.settings
  }
  expect(unavailableOf(3, settings("2"), 10)).toBe(2)
  expect(unavailableOf(1, settings("50%"), 10)).toBe(1)
  expect(unavailableOf(0, settings("2"), 10)).toBe(2)
})
