import { spawn } from "node:child_process"
import { once } from "node:events"
import { expect, test } from "vitest"
import { isAlive, mark } from "./processes.ts"

test("a process is known while it lives and not afterwards", async () => {
  const child = spawn("sleep", ["60"])
  await once(child, "spawn")
  const marked = mark(child.pid ?? 0)
  expect(isAlive(marked)).toBe(true)
  child.kill()
  await once(child, "exit")
  expect(isAlive(marked)).toBe(false)
})

test("another process with the same number is a stranger, and so is one from before a restart", () => {
  const own = mark(process.pid)
  expect(isAlive(own)).toBe(true)
  expect(isAlive({ ...own, startTicks: "1" })).toBe(false)
  expect(isAlive({ ...own, boot: "another" })).toBe(false)
})
