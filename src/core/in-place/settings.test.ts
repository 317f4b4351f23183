import { describe, expect, test } from "vitest"
import { settingAnnotations as names, strategyAnnotation } from "./names.ts"
import { parseSettings, podsOf } from "./settings.ts"

const inPlace = { [strategyAnnotation]: "InPlaceIfPossible" }

test("without further annotations: revert what fails, no grace period, nothing kept", () => {
  expect(parseSettings(inPlace)).toEqual({
    ok: true,
    settings: {
      strategy: "InPlaceIfPossible",
      partition: { count: 0 },
      graceSeconds: 0,
      onFailure: "Revert",
      containerOrder: [],
      isUnverified: false,
    },
  })
})

test("a workload without the annotation is not updated in place", () =>
  expect(parseSettings()).toMatchObject({ settings: { strategy: "Recreate" } }))

test("every annotation is read", () => {
  const all = {
    [strategyAnnotation]: "InPlaceOnly",
    [names.maxUnavailable]: "25%",
    [names.partition]: "2",
    [names.graceSeconds]: "30",
    [names.onFailure]: "Rollback",
    [names.order]: "apps.kubernetes.io/pod-index",
    [names.containerOrder]: "proxy, app",
    [names.unverified]: "true",
  }
  expect(parseSettings(all)).toEqual({
    ok: true,
    settings: {
      strategy: "InPlaceOnly",
      maxUnavailable: { percent: 25 },
      partition: { count: 2 },
      graceSeconds: 30,
      onFailure: "Rollback",
      order: "apps.kubernetes.io/pod-index",
      containerOrder: ["proxy", "app"],
      isUnverified: true,
    },
  })
})

describe("what cannot be read is answered with what to write", () => {
  const bad: Record<string, [name: string, value: string, instead: string]> = {
    strategy: [strategyAnnotation, "inplace", "InPlaceIfPossible, InPlaceOnly, Recreate"],
    "no pod at all": [names.maxUnavailable, "0", '"1"'],
    "more than all": [names.maxUnavailable, "120%", '"25%"'],
    "a negative partition": [names.partition, "-1", '"2"'],
    "a unit": [names.graceSeconds, "30s", '"0" to "3600"'],
    "a day": [names.graceSeconds, "86400", '"3600"'],
    policy: [names.onFailure, "Retry", "Stop, Revert, Rollback"],
    label: [names.order, "a b", "pod label"],
    "a container twice": [names.containerOrder, "app,app", '"sidecar,app"'],
    "a boolean": [names.unverified, "yes", '"true" or "false"'],
  }
  for (const [what, [name, value, instead]] of Object.entries(bad))
    test(what, () => {
      const parsed = parseSettings({ ...inPlace, [name]: value })
      expect(parsed).toEqual({ ok: false, problem: expect.stringContaining(`${name} is "${value}": write `) })
      expect(parsed).toEqual({ ok: false, problem: expect.stringContaining(instead) })
    })
})

test("an order of thousands of containers is not read: it would be searched for each container of each pod", () => {
  const order = Array.from({ length: 33 }, (_, index) => `c${index}`)
  const read = (most: number) => parseSettings({ ...inPlace, [names.containerOrder]: order.slice(0, most).join() })
  expect(read(32)).toMatchObject({ ok: true })
  expect(read(33)).toMatchObject({ ok: false, problem: expect.stringContaining("32 at most") })
})

test("a share of pods is rounded down, and is at least one", () => {
  const of = (percent: number, replicas: number) => podsOf({ percent }, replicas)
  expect([of(25, 3), of(25, 8), of(99, 3), of(0, 3), of(100, 3)]).toEqual([1, 2, 2, 0, 3])
  expect(podsOf({ count: 5 }, 3)).toBe(3)
})
