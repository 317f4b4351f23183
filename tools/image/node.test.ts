import { existsSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { expect, onTestFinished, test, vi } from "vitest"
import { pinnedNode } from "./node.ts"

test("a Node that has another hash than the one that is written here gets into no image", async () => {
  const folder = mkdtempSync(join(tmpdir(), "aim-node-"))
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }))
  onTestFinished(() => void vi.unstubAllEnvs())
  // npm is a program that gives something else: --pack-destination is its fourth word.
  writeFileSync(join(folder, "npm"), '#!/bin/sh\necho other >"$4/node.tgz"\necho node.tgz\n', { mode: 0o700 })
  vi.stubEnv("PATH", `${folder}:${process.env.PATH}`)
  vi.stubEnv("AIM_CACHE", join(folder, "cache"))
  await expect(pinnedNode("arm64", () => {})).rejects.toThrow(
    /^node-linux-\S+ \S+ is sha512-\S+, and sha512-\S+ was expected$/,
  )
  const kept = readdirSync(join(folder, "cache", "node")).filter(name => !/\.(lock|unfinished)$/.test(name))
  expect(kept).toEqual([])
  expect(existsSync(join(folder, "cache", "debian"))).toBe(false)
})
