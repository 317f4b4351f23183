import { execFileSync } from "node:child_process"
import { readdirSync, readFileSync } from "node:fs"
import { availableParallelism } from "node:os"

/** The core that `clearCore` leaves to whoever is started on it. */
export const clearedCore = String(availableParallelism() - 1)

/**
 * Moves this process and all that it has started to the other cores. Beside a server that would take every core, how
 * late a timer comes says when the kernel gave us a turn, not how long we keep others from theirs.
 */
export function clearCore(): void {
  if (clearedCore === "0") throw new Error("a core to itself needs a machine with two")
  const others = `0-${Number(clearedCore) - 1}`
  for (const pid of familyOf(process.pid))
    execFileSync("taskset", ["--all-tasks", "--cpu-list", "--pid", others, String(pid)], { stdio: "ignore" })
}

export const onClearedCore = (command: readonly string[]) => ["taskset", "--cpu-list", clearedCore, ...command]

/** A process and its descendants, whichever thread has started them. */
function familyOf(pid: number): number[] {
  const tasks = `/proc/${pid}/task`
  const children = readdirSync(tasks).map(thread => readFileSync(`${tasks}/${thread}/children`, "utf8"))
  return [pid, ...children.join("").split(" ").filter(Boolean).map(Number).flatMap(familyOf)]
}
