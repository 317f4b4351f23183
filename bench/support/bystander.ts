import { fork } from "node:child_process"
import { once } from "node:events"
import { monitorEventLoopDelay } from "node:perf_hooks"
import { fileURLToPath } from "node:url"
import type { Figure } from "./figures.ts"
import { show } from "./figures.ts"

/**
 * A process that does nothing. How late its timers come is how long one waits for a core here, with everything that is
 * measured, and with whoever else has the machine.
 */
export type Bystander = {
  /** Since it was asked before. */
  delayP99Ms(): Promise<number>
  stop(): Promise<void>
}

const resolutionMs = 10 // as the controller measures itself
const self = fileURLToPath(import.meta.url)

export function startBystander(): Bystander {
  const child = fork(self, { env: { ...process.env, AIM_BENCH_BYSTANDER: "1" } })
  const ended = once(child, "exit")
  return {
    async delayP99Ms() {
      child.send("ask")
      const [answer] = await once(child, "message")
      return answer as number
    },
    async stop() {
      child.disconnect()
      await ended
    },
  }
}

if (process.env.AIM_BENCH_BYSTANDER) {
  const delays = monitorEventLoopDelay({ resolution: resolutionMs })
  delays.enable()
  process.on("message", () => {
    process.send?.(Math.max(0, delays.percentile(99) / 1e6 - resolutionMs))
    delays.reset()
  })
}

export type Delay = { ownMs: number; idleMs: number }

/**
 * What a controller has beyond the delay of an idle process beside it; of several, the longest. The difference of two
 * percentiles is no percentile: it says how much of the delay is not the machine's, and no more.
 */
export function delayFigure(delays: readonly Delay[], where: string): Figure {
  const added = ({ ownMs, idleMs }: Delay) => Math.max(0, ownMs - idleMs)
  const [worst] = [...delays].sort((a, b) => added(b) - added(a))
  return {
    name: "event-loop delay p99, less an idle process's",
    measured: added(worst!),
    most: 50,
    unit: "ms",
    note: `${show(worst!.ownMs, "ms")}, an idle process beside it ${show(worst!.idleMs, "ms")}; ${where}`,
  }
}
