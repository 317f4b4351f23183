import type { Clock } from "./clock.ts"

/** Does all steps, sooner or later. */
export type InPieces = (steps: Iterator<unknown>) => Promise<void>

/**
 * For work that grows with what a tenant has created. It is done for a few milliseconds at a time, in turn with other
 * such work. Between two pieces everything else gets as much time, so half of the event loop is always free. A step
 * cannot be divided, and must be short.
 */
export function createPieces(clock: Clock, pieceMs = 5): InPieces {
  const waiting: { steps: Iterator<unknown>; done: () => void; fail: (error: unknown) => void }[] = []
  let isUnderWay = false

  function turn() {
    const work = waiting.shift()
    if (!work) {
      isUnderWay = false
      return
    }
    const until = clock.monotonic() + pieceMs
    try {
      let isDone = false
      do isDone = work.steps.next().done === true
      while (!isDone && clock.monotonic() < until)
      if (isDone) work.done()
      else waiting.push(work)
    } catch (error) {
      work.fail(error)
    }
    clock.after(pieceMs, turn)
  }

  return steps =>
    new Promise((done, fail) => {
      waiting.push({ steps, done, fail })
      if (isUnderWay) return
      isUnderWay = true
      turn()
    })
}
