import { spawnSync } from "node:child_process"
import { cpSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { expect, onTestFinished, test } from "vitest"

const root = join(import.meta.dirname, "../..")

test("a Node that is fetched must have the hash that is written here: npm gets it in a lock file", () => {
  const folder = mkdtempSync(join(tmpdir(), "aim-prepare-"))
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }))
  cpSync(join(root, "bin/prepare.cjs"), join(folder, "bin/prepare.cjs"))
  // Whatever runs this is too old, and npm is a program that does nothing.
  writeFileSync(join(folder, "package.json"), JSON.stringify({ engines: { node: ">=999.0.0" } }))
  writeFileSync(join(folder, "npm"), "#!/bin/sh\nexit 7\n", { mode: 0o700 })
  const { status, stdout, stderr } = spawnSync(process.execPath, [join(folder, "bin/prepare.cjs")], {
    encoding: "utf8",
    env: { PATH: `${folder}:/usr/bin:/bin`, AIM_CACHE: join(folder, "cache"), HOME: folder },
  })
  expect({ status, stdout }).toEqual({ status: 1, stdout: "" })
  const [, version = ""] = /fetching Node (\S+)/.exec(stderr) ?? []
  const { packages } = JSON.parse(readFileSync(join(folder, "cache/node", version, "package-lock.json"), "utf8"))
  const name = `node-linux-${process.arch}`
  expect(packages[""].dependencies).toEqual({ [name]: version })
  expect(packages[`node_modules/${name}`]).toEqual({
    version,
    integrity: expect.stringMatching(/^sha512-[\w+/]{86}==$/),
  })
})

test("every package of the lock file has its hash", () => {
  const { packages } = JSON.parse(readFileSync(join(root, "package-lock.json"), "utf8"))
  const without = Object.entries(packages as Record<string, { integrity?: string }>)
    .filter(([path, { integrity }]) => path !== "" && !integrity?.startsWith("sha512-"))
    .map(([path]) => path)
  expect(without).toEqual([])
})
