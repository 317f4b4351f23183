import { setImmediate as breathe } from "node:timers/promises"
import { expect, test } from "vitest"
import type { Client } from "#runtime/client/client.ts"
import { act, createWriteTurns } from "./apply.ts"
import type { Decision } from "./decide.ts"

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
  const inTurn = createWriteTurns()
  const sources = { pod: () => undefined }
  const all = await Promise.all(
    ["a", "b", "c", "d"].map(space => act(client, sources, [repairing(space, 50)], { by: space, at: 0, inTurn })),
  )
  expect([most, written]).toEqual([16, 200])
  expect(all.map(({ accepted }) => [...accepted.values()])).toEqual([[50], [50], [50], [50]])
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
