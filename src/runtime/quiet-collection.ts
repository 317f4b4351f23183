import { performance } from "node:perf_hooks"
import { setFlagsFromString } from "node:v8"
import { runInNewContext } from "node:vm"
import { type Clock, systemClock } from "./clock.ts"

/** What is known of the process at one moment, and what can be done about it. */
export type Heap = {
  /** Bytes in use, garbage included. */
  used(): number
  /** Which share of the time since the last call the event loop was busy, from 0 to 1. */
  busy(): number
  collect(): void
}

export type QuietCollectionOptions = { clock?: Clock; heap?: Heap; everyMs?: number; growthBytes?: number }

/**
 * Collects garbage once the process is quiet. V8 collects when memory is asked for, and a controller that has finished
 * its work asks for none: what its start, or a rollout, left behind would stay for hours (docs/benchmarks.md). A
 * collection takes as long as the heap is large, so it waits for a time with nothing else to do.
 */
export function startQuietCollection({
  clock = systemClock,
  heap = heapOfProcess(),
  everyMs = 30_000,
  growthBytes = 4 * 1024 * 1024,
}: QuietCollectionOptions = {}): () => void {
  let left = 0
  const look = () => {
    cancel = clock.after(everyMs, look)
    if (heap.busy() > 0.05 || heap.used() < left + growthBytes) return
    heap.collect()
    left = heap.used()
  }
  let cancel = clock.after(everyMs, look)
  return () => cancel()
}

function heapOfProcess(): Heap {
  setFlagsFromString("--expose-gc")
  const gc = runInNewContext("gc") as (how: { type: "major"; flavor: "last-resort" }) => void
  let before = performance.eventLoopUtilization()
  return {
    used: () => process.memoryUsage().heapUsed,
    busy() {
      const now = performance.eventLoopUtilization()
      const { utilization } = performance.eventLoopUtilization(now, before)
      before = now
      return utilization
    },
    // This flavour gives pages back to the machine, too.
    collect: () => gc({ type: "major", flavor: "last-resort" }),
  }
}
