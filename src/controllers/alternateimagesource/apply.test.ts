import { setImmediate as breathe } from "node:timers/promises"
import { expect, test } from "vitest"
import type { Client } from "#runtime/client/client.ts"
import { act, createWriteTurns } from "./apply.ts"
import type { Decision } from "./group.ts"
import { PullPace } from "./pull-pace.ts"

test("however many AlternateImageSources repair at once, the server gets sixteen writes at a time", async () => {
  let [open, most, written] = [0, 0, 0]
  const client = {
    async patch() {
      most = Math.max(most, ++open)
      await breathe()
      open--
      written++
      return {}
    },
  } as unknown as Client
  const sources = { pod: () => undefined, answered: () => {} }
  const hands = { client, sources, inTurn: createWriteTurns(), pace: new PullPace({ now: () => 0 }) }
  const scene = { hasArrived: () => true }
  const all = await Promise.all(
    ["a", "b", "c", "d"].map(space => act(hands, [repairing(space, 50)], scene, { by: space, at: 0 })),
  )
  expect([most, written]).toEqual([16, 200])
  expect(all.map(({ accepted }) => [...accepted.values()])).toEqual([[50], [50], [50], [50]])
})

test("of a node no more are sent than it pulls at once, but all where the image is there or no node is known", async () => {
  const client = { patch: async () => ({}) } as unknown as Client
  const sources = { pod: () => undefined, answered: () => {} }
  const sent = async (hasArrived: boolean, more: object) => {
    const hands = { client, sources, inTurn: createWriteTurns(), pace: new PullPace({ now: () => 1000 }) }
    const decision = repairing("a", 20)
    const repairs = decision.repairs.map(each => ({ ...each, pod: { ...each.pod, ...more } }))
    const wanted = [{ ...decision, repairs }]
    const { accepted, goOnAt } = await act(hands, wanted, { hasArrived: () => hasArrived }, { by: "a", at: 0 })
    return [[...accepted.values()][0], goOnAt]
  }
  expect(await sent(false, { node: "n", pullsAlways: false })).toEqual([5, 1200])
  expect(await sent(true, { node: "n", pullsAlways: false })).toEqual([20, undefined])
  expect(await sent(true, { node: "n", pullsAlways: true })).toEqual([5, 1200])
  expect(await sent(false, { node: "", pullsAlways: false })).toEqual([20, undefined])
})

const repairing = (space: string, count: number) =>
  ({
    group: { image: "a.example/app:1", workload: { namespace: space } },
    repairs: Array.from({ length: count }, (_, at) => ({
      do: "repair",
      pod: { key: `${space}/${at}`, uid: `${at}`, resourceVersion: "1", image: "a.example/app:1" },
      container: "app",
      isInit: false,
      to: "b.example/app:1",
      reason: "Unreachable",
    })),
  }) as unknown as Decision
