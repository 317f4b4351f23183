import { expect, test } from "vitest"
import { decide } from "../run.ts"
import type { SetPod, Sight } from "../sight.ts"
import { aRun, oldSet, running } from "../test-sight.ts"

const targetRef = { apiVersion: "apps/v1", kind: "DaemonSet" as const, name: "web" }
const podOf = (name: string, hash: string): SetPod => ({ name, hash, ordinal: 0, isReady: true, isGoing: false })

/** A run that has just begun: no pod is of the new revision. */
function begun(hash: string): Sight {
  const { trial: _, ...sight } = running(0, { spec: { targetRef }, run: { target: { ...aRun.target, hash } } })
  const tested = { ...oldSet, name: "web-new", owner: "trial" as const, hash, checksum: "bbbb", size: 0, ready: 0 }
  return {
    ...sight,
    sets: hash === "" ? [oldSet] : [oldSet, tested],
    set: {
      pods: ["a", "b", "c", "d"].map(name => podOf(name, "old")),
      maxUnavailable: 1,
      partition: 0,
      start: 0,
      isSettled: true,
    },
  }
}

test("the first pod of before goes", () => {
  expect(decide(begun("new")).act).toEqual({ do: "deletePod", pod: "a", isReady: true })
})

test("one whose revision was not seen yet loses no pod: which of them are of it is not known", () => {
  expect(decide(begun("")).act).toBeUndefined()
})
