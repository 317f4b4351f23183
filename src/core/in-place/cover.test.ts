import { expect, test } from "vitest"
import { BudgetCover, isDisturbed } from "./cover.ts"
import type { PodFacts } from "./pod.ts"
import { TakenPods } from "./taken.ts"

const now = 1_000_000

const pod = (name: string, fields: Partial<PodFacts> = {}): PodFacts => ({
  ...{
    namespace: "shop",
    name,
    uid: `uid-${name}`,
    resourceVersion: "1",
    owner: "set",
    ownerName: "web",
    node: "node",
  },
  ...{ isReady: true, readyChangedAt: undefined, pullSecrets: [], labels: { app: "web" }, annotations: {} },
  containers: new Map(),
  mark: undefined,
  gate: undefined,
  ...fields,
})
const drained = { gate: { isDrained: true } }

const budget = (fields: object = {}) => ({
  ...{ name: "b", selector: { matchLabels: { app: "web" } }, allowed: 2, desired: 2, isCurrent: true },
  ...fields,
})

function opened(...pods: readonly PodFacts[]) {
  const taken = new TakenPods()
  const cover = new BudgetCover(uid => taken.has(uid))
  const found = new Map(pods.map(each => [each.name, each]))
  taken.subscribe(({ key }) => void cover.takenChanged(key, found.get(key)!))
  const set = (fields: object = {}) => cover.budgetChanged("b", budget(fields), () => found)
  set()
  const room = () => cover.over({ app: "web", tier: "1" }, key => found.get(key), now)[0]?.allowed
  const change = (each: PodFacts) => {
    cover.podChanged(each.name, found.get(each.name), each)
    found.set(each.name, each)
  }
  const take = (workload: string, name: string) => taken.take(workload, { key: name, uid: `uid-${name}` })
  return { taken, cover, found, set, room, change, take }
}

test("a pod that is taken counts once: before its budget shows it, and after", () => {
  const { room, take, change, set } = opened(pod("a"), pod("b"), pod("c"), pod("d"))
  expect(room()).toBe(2)
  take("Deployment/web", "a")
  expect(room()).toBe(1)
  change(pod("a", { isReady: false }))
  expect(room()).toBe(1)
  set({ allowed: 1 })
  expect(room()).toBe(1)
})

test("a place that is freed is there again; another workload cannot free it", () => {
  const { room, take, taken } = opened(pod("a"), pod("b"), pod("c"))
  take("Deployment/web", "a")
  taken.free("StatefulSet/db", { uid: "uid-a" })
  expect(room()).toBe(0)
  taken.keep("Deployment/web", [{ key: "b", uid: "uid-b" }])
  expect([taken.has("uid-a"), taken.has("uid-b"), room()]).toEqual([false, true, 0])
  taken.keep("Deployment/web", [])
  expect(room()).toBe(1)
})

test("what another process has begun is read from the pods", () => {
  expect(opened(pod("a", drained), pod("b"), pod("c")).room()).toBe(0)
  expect(opened(pod("a"), pod("b"), pod("c")).room()).toBe(1)
})

const mark = {
  operation: "1-x",
  from: { web: "1" },
  to: { web: "2" },
  was: { web: { id: "old", restarts: 0 } },
  at: now,
}
const restarting = { ...mark, from: {}, to: {}, restarts: ["web"] }
const running = (id: string): Partial<PodFacts> => ({
  containers: new Map([
    [
      "web",
      { image: "2", isInit: false, id, digest: "", restarts: 0, isRunning: true, isReady: true, waiting: "" } as const,
    ],
  ]),
})

test.each<[string, Partial<PodFacts>, boolean]>([
  ["as it was", running("old"), false],
  ["drained", drained, true],
  ["serving, with a gate", { gate: { isDrained: false } }, false],
  ["perhaps written", { isInDoubt: true }, true],
  ["changed, and not restarted yet", { ...running("old"), mark }, true],
  ["changed, and restarted", { ...running("new"), mark }, false],
  ["changed so long ago that it will not restart", { ...running("old"), mark: { ...mark, at: now - 30_000 } }, false],
  ["waiting for the node's agent", { ...running("old"), mark: restarting }, true],
  ["restarted by the node's agent", { ...running("new"), mark: restarting }, false],
  ["left by the node's agent", { ...running("old"), mark: { ...restarting, at: now - 60_000 } }, false],
])("whether a pod is disturbed: %s", (_, fields, expected) => {
  expect(isDisturbed(pod("a", fields), now)).toBe(expected)
})

test("a budget whose controller has not seen it has no room", () => {
  const { room, set } = opened(pod("a"), pod("b"), pod("c"))
  set({ isCurrent: false })
  expect(room()).toBe(0)
})

test("a pod whose labels are known costs no question to any selector", () => {
  let questions = 0
  const selector = {
    get matchLabels() {
      questions++
      return { app: "web" }
    },
  }
  const { change, set } = opened(pod("a"), pod("b"))
  set({ selector })
  const labels = { app: "web" }
  change(pod("a", { labels }))
  const before = questions
  for (const isReady of [false, true, false]) change(pod("a", { labels, isReady }))
  expect(questions).toBe(before)
})

test("the index is equal to a recount, whatever the order of events", () => {
  for (let seed = 1; seed <= 20; seed++) {
    let state = seed
    const random = () => {
      state = (state * 48_271) % 2_147_483_647
      return state / 2_147_483_647
    }
    const pick = <T>(of: readonly T[]): T => of[Math.floor(random() * of.length)]!
    const names = ["a", "b", "c", "d", "e"]
    const { taken, found, set, room, change, take } = opened(...names.map(name => pod(name)))
    let selector: object = budget().selector
    for (let step = 0; step < 100; step++) {
      const name = pick(names)
      const what = pick(["pod", "take", "free", "budget"])
      if (what === "take") take("w", name)
      else if (what === "free") taken.free("w", { uid: `uid-${name}` })
      else if (what === "budget") {
        selector = { matchLabels: pick([{ app: "web" }, { app: "web", tier: "1" }]) }
        set({ selector })
      } else {
        const labels: Record<string, string> = pick([{ app: "web" }, { app: "web", tier: "1" }, { app: "db" }])
        change(pod(name, { isReady: random() < 0.7, labels, ...pick([{}, drained]) }))
      }
      const isTier = JSON.stringify(selector).includes("tier")
      const covered = [...found.values()].filter(
        ({ labels }) => labels.app === "web" && (!isTier || labels.tier === "1"),
      )
      const healthy = covered.filter(each => each.isReady && !isDisturbed(each, now) && !taken.has(each.uid)).length
      expect([seed, step, room()]).toEqual([seed, step, Math.max(0, Math.min(2, healthy - 2))])
    }
  }
})
