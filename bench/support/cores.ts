import { execFileSync } from "node:child_process"
import { readdirSync, readFileSync } from "node:fs"
import { availableParallelism } from "node:os"

const cleared = availableParallelism() - 1

/** To be checked before anything is measured. */
export function expectCoreToClear(): void {
  if (cleared === 0) throw new Error("the event-loop delay is measured on a core of its own: this needs two")
}

/**
 * Moves this process and all that it has started to the other cores. Beside a server that takes every core, how
 * late a timer is depends on the kernel's scheduling, not on our own work.
 */
export function clearCore(): void {
  for (const pid of familyOf(process.pid))
    execFileSync("taskset", ["--all-tasks", "--cpu-list", "--pid", `0-${cleared - 1}`, String(pid)], {
      stdio: "ignore",
    })
}

/** The command that has the cleared core to itself. */
export const onClearedCore = (command: readonly string[]) => ["taskset", "--cpu-list", String(cleared), ...command]

/** A process and its descendants, whichever thread has started them. */
export function familyOf(pid: number): number[] {
  const tasks = `/proc/${pid}/task`
  const children = readdirSync(tasks).map(thread => readFileSync(`${tasks}/${thread}/children`, "utf8"))
  return [pid, ...children.join("").split(" ").filter(Boolean).map(Number).flatMap(familyOf)]
}
