import { setImmediate as breathe } from "node:timers/promises"
import { expect, test } from "vitest"
import { decisionAnnotation } from "#core/image/record.ts"
import type { Client } from "#runtime/client/client.ts"
import { act, createWriteTurns } from "./apply.ts"
import type { PodFacts } from "./facts.ts"
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

test("a record of a repair in an earlier version is replaced, and one of the same version is kept", async () => {
  const written = async (was: string, to: string) => {
    let body: { metadata: { annotations: Record<string, string> } } | undefined
    const client = {
      async patch(_: unknown, __: unknown, patch: { body: NonNullable<typeof body> }) {
        body = patch.body
        return {}
      },
    } as unknown as Client
    const decision = { from: was, was: { app: was }, to, reason: "Unreachable", operation: "", by: "x", at: 0 }
    const sources = { pod: () => ({ decision }) as unknown as PodFacts, answered: () => {} }
    const hands = { client, sources, inTurn: createWriteTurns(), pace: new PullPace({ now: () => 0 }) }
    await act(hands, [repairing("a", 1)], { hasArrived: () => true }, { by: "a", at: 0 })
    return JSON.parse(body!.metadata.annotations[decisionAnnotation]!).was
  }
  // The pod has a.example/app:1 now.
  expect(await written("c.example/app:0", "a.example/app:0")).toEqual({ app: "a.example/app:1" })
  expect(await written("c.example/app:1", "a.example/app:1")).toEqual({ app: "c.example/app:1" })
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
