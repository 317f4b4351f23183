import { readFileSync } from "node:fs"

/** Identifies a process for later: its number alone may by then belong to another process. */
export type ProcessMark = { pid: number; startTicks: string; boot: string }

export function mark(pid: number): ProcessMark {
  return { pid, startTicks: startTicks(pid) ?? "", boot: bootId() }
}

export function isAlive({ pid, startTicks: ticks, boot }: ProcessMark): boolean {
  return boot === bootId() && ticks !== "" && startTicks(pid) === ticks
}

/** When a process started, in ticks since boot; undefined when it is gone or only waits to be collected. */
export function startTicks(pid: number): string | undefined {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, "utf8")
    // The name, in parentheses, may itself contain spaces and parentheses.
    const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ")
    return fields[0] === "Z" || fields[0] === "X" ? undefined : fields[19]
  } catch {
    return undefined
  }
}

const bootId = () => readFileSync("/proc/sys/kernel/random/boot_id", "utf8").trim()
