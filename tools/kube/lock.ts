import { spawn } from "node:child_process"
import { once } from "node:events"
import { mkdirSync } from "node:fs"
import { dirname } from "node:path"
import { findProgram } from "./command.ts"

/**
 * Runs `work` while no other process holds `file`. The lock lives in a child that ends with us, so that a killed owner
 * blocks no other; whether a lock file with a process id in it is stale could only be guessed.
 */
export async function withLock<T>(file: string, onWait: () => void, work: () => Promise<T>): Promise<T> {
  mkdirSync(dirname(file), { recursive: true })
  const flock = findProgram("flock")
  if (!flock) throw new Error("flock is missing; install it: apt-get install --no-install-recommends util-linux")
  const holder = spawn(flock, [file, "sh", "-c", "echo held; cat"], { stdio: ["pipe", "pipe", "inherit"] })
  const waiting = setTimeout(onWait, 500)
  try {
    const held = once(holder.stdout, "data")
    const ended = once(holder, "exit").then(([code]) => {
      throw new Error(`locking ${file}: flock ended with ${code}`)
    })
    await Promise.race([held, ended])
    ended.catch(() => {})
    clearTimeout(waiting)
    return await work()
  } finally {
    clearTimeout(waiting)
    holder.stdin.end()
  }
}
