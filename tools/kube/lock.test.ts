import { mkdtempSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { expect, onTestFinished, test } from "vitest"
import { withLock } from "./lock.ts"

test("two do not work at the same time, and one that failed does not block others", async () => {
  const folder = mkdtempSync(join(tmpdir(), "aim-lock-"))
  onTestFinished(() => rmSync(folder, { recursive: true }))
  const said: string[] = []
  const work = (name: string) => async () => {
    said.push(`${name} begins`)
    await new Promise(resolve => setTimeout(resolve, 50))
    said.push(`${name} ends`)
    if (name === "first") throw new Error("in vain")
  }
  const file = join(folder, "lock")
  const first = withLock(file, () => {}, work("first")).catch(error => error.message)
  await expect.poll(() => said).toContain("first begins")
  await withLock(file, () => {}, work("second"))
  expect([await first, ...said]).toEqual(["in vain", "first begins", "first ends", "second begins", "second ends"])
})
