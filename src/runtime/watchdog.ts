import { Worker } from "node:worker_threads"
import { systemClock } from "./clock.ts"

/**
 * Ends this process when its event loop has been blocked for so long. Such a process holds no Lease and answers no
 * health check, and it cannot notice: none of its timers fires. So a separate thread counts the beats of the loop. It
 * sends a SIGKILL, because every other signal would wait for the loop as well.
 *
 * Time in which the whole process was stopped (SIGSTOP) does not count: the thread was stopped as well, and the guard
 * of the client refuses the writes that follow.
 */
export function startWatchdog({ stillMs, beatMs = 1000 }: { stillMs: number; beatMs?: number }): () => void {
  const beats = new Int32Array(new SharedArrayBuffer(4))
  let cancel = () => {}
  const beat = () => {
    Atomics.add(beats, 0, 1)
    cancel = systemClock.after(beatMs, beat)
  }
  beat()
  const worker = new Worker(watch, {
    eval: true,
    execArgv: [],
    env: {},
    workerData: { beats, beatMs, stillMs },
    resourceLimits: { maxOldGenerationSizeMb: 8, maxYoungGenerationSizeMb: 1, codeRangeSizeMb: 1, stackSizeMb: 1 },
  })
  worker.unref()
  return () => {
    cancel()
    void worker.terminate()
  }
}

/** As text, so that it is part of the bundle's one file. It must not log through the main thread, which is blocked. */
const watch = `
const { workerData: { beats, beatMs, stillMs } } = require("node:worker_threads")
const { writeSync } = require("node:fs")
let [seen, still, lookedAt] = [0, 0, performance.now()]
setInterval(() => {
  const [beat, now] = [Atomics.load(beats, 0), performance.now()]
  const passed = now - lookedAt
  lookedAt = now
  still = beat !== seen || passed > 3 * beatMs ? 0 : still + passed
  seen = beat
  if (still < stillMs) return
  const message = "the event loop has stood still for " + Math.round(still) + " ms, ending"
  try {
    writeSync(2, JSON.stringify({ level: "error", time: new Date().toISOString(), message }) + "\\n")
  } finally {
    process.kill(process.pid, "SIGKILL")
  }
}, beatMs)
`
