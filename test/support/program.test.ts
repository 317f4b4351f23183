import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { afterAll, expect, test } from "vitest"
import { until } from "#tools/kube/api.ts"
import { keepProgram } from "./program.ts"

const folder = mkdtempSync(join(tmpdir(), "aim-program-"))
afterAll(() => rmSync(folder, { recursive: true, force: true }))

const starts = join(folder, "starts")
writeFileSync(starts, "")
const pids = () => readFileSync(starts, "utf8").split("\n").filter(Boolean).map(Number)
const isAlive = (pid: number) => {
  try {
    return process.kill(pid, 0)
  } catch {
    return false
  }
}

test("a program that ends with these words is started again", async () => {
  const script = `echo $$ >> ${starts}; [ $(wc -l < ${starts}) -lt 3 ] && { echo lost; exit 1; }; exec sleep 600`
  keepProgram("/bin/sh", ["-c", script], "lost")
  await until("the third start", async () => pids().length === 3 && isAlive(pids()[2]!))
})

test("and is stopped when its test ends", () => {
  expect(pids().map(isAlive)).toEqual([false, false, false])
})
