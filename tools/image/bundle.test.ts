import { execFileSync } from "node:child_process"
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { expect, onTestFinished, test } from "vitest"
import { bundle, pack } from "../build.ts"
import { repository } from "../kube/folders.ts"

const { version } = JSON.parse(readFileSync(join(repository, "package.json"), "utf8"))

/** A folder with nothing above it that Node would look into for packages. */
function emptyFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), "aim-bundle-"))
  onTestFinished(() => rmSync(folder, { recursive: true }))
  return folder
}

function run(command: string, args: string[], cwd: string): string {
  return execFileSync(command, args, { cwd, encoding: "utf8", stdio: ["ignore", "pipe", "pipe"] })
}

test("the bundle runs where no package is installed, and names the licences of what is in it", async () => {
  const { folder, files } = await bundle({ folder: emptyFolder() })
  expect(run(process.execPath, ["aim.js", "--version"], folder)).toContain(version)
  // Commands are chunks of their own, and each has to be whole: manifests needs yaml, zod and every schema.
  expect(run(process.execPath, ["aim.js", "manifests", "crds"], folder)).toContain(
    "name: serviceimages.autoimagemanager.io",
  )
  expect(files).toContain("THIRD-PARTY-NOTICES.txt")
  expect(readFileSync(join(folder, "THIRD-PARTY-NOTICES.txt"), "utf8")).toMatch(
    /^commander .*\(MIT\)[\s\S]*^zod .*\(MIT\)/m,
  )
}, 60_000)

test("what a new build no longer has is gone", async () => {
  const folder = emptyFolder()
  const entry = join(folder, "entry.mjs")
  writeFileSync(join(folder, "part.mjs"), "export const part = 1")
  writeFileSync(entry, 'console.log(await import("./part.mjs"))')
  const target = join(folder, "dist")
  const before = await bundle({ entry, folder: target })
  expect(before.files).toHaveLength(3)
  writeFileSync(entry, "console.log(2)")
  await bundle({ entry, folder: target })
  expect(readdirSync(target).sort()).toEqual(["THIRD-PARTY-NOTICES.txt", "aim.js"])
  expect(run(process.execPath, ["aim.js"], target)).toBe("2\n")
})

test("a bundle that would need a package at run time is refused", async () => {
  const folder = emptyFolder()
  const entry = join(folder, "entry.mjs")
  writeFileSync(entry, 'import "a-package-that-nobody-has"')
  await expect(bundle({ entry, folder: join(folder, "dist") })).rejects.toThrow("a-package-that-nobody-has")
})

test("the packed package installs without any other and runs", async () => {
  const packed = pack(await bundle({ folder: emptyFolder() }))
  const user = emptyFolder()
  writeFileSync(join(user, "package.json"), "{}")
  run("npm", ["install", "--offline", "--no-audit", "--no-fund", packed], user)
  expect(readdirSync(join(user, "node_modules")).filter(name => !name.startsWith("."))).toEqual(["autoimagemanager"])
  expect(run("node_modules/.bin/aim", ["--version"], user)).toContain(version)
}, 60_000)
