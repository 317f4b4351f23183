import { execFileSync, spawnSync } from "node:child_process"
import { randomBytes } from "node:crypto"
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { dirname, join } from "node:path"
import { gzipSync } from "node:zlib"
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
    /^commander .*\(MIT\)[\s\S]*^preact .*\(MIT\)[\s\S]*^zod .*\(MIT\)/m,
  )
  // The page of the dashboard is built, and is small enough for a slow line.
  expect(files).toContain("page/index.html")
  const page = readFileSync(join(folder, "page/index.html"), "utf8")
  const sizeOf = (name: string) => gzipSync(readFileSync(join(folder, "page", name)), { level: 9 }).length
  const first = [...page.matchAll(/(?:href|src|content)="(assets\/[^"]+)"/g)].map(([, name]) => name!)
  expect(first.length).toBeGreaterThan(2)
  expect(first.reduce((sum, name) => sum + sizeOf(name), 0)).toBeLessThan(60_000)
  const all = files.filter(name => name.startsWith("page/assets/")).map(name => sizeOf(name.slice("page/".length)))
  expect(all.reduce((sum, size) => sum + size, 0)).toBeLessThan(150_000)
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

/** As on a machine that never saw this repository: another home, an empty cache, and no way to a registry. */
function asNewcomer(command: string, args: string[], home: string): string {
  const PATH = `${dirname(process.execPath)}:/usr/bin:/bin`
  const env = { PATH, HOME: home, npm_config_offline: "true", npm_config_registry: "http://127.0.0.1:9" }
  return execFileSync(command, args, { cwd: home, env, encoding: "utf8", stdio: ["ignore", "pipe", "pipe"] })
}

test("the package is the launcher and the bundle, small, installs offline without any other, and runs", async () => {
  // What lies in dist from a build of the image is none of the package's.
  const dist = emptyFolder()
  mkdirSync(join(dist, "image"))
  writeFileSync(join(dist, "image", "blob"), randomBytes(4 << 20))
  const packed = pack(await bundle({ folder: dist }))
  expect(statSync(packed).size).toBeLessThan(1.5e6)
  const files = run("tar", ["tzf", packed], dist).trim().split("\n").sort()
  expect(files.filter(file => !/^package\/dist\/(?:[\w.-]+\.js|page\/.+)$/.test(file))).toEqual([
    "package/LICENSE",
    "package/NOTICE",
    "package/README.md",
    "package/bin/aim",
    "package/bin/kubectl_complete-aim",
    "package/bin/prepare.cjs",
    "package/dist/THIRD-PARTY-NOTICES.txt",
    "package/package.json",
  ])
  expect(files).toContain("package/dist/aim.js")
  const manifest = JSON.parse(run("tar", ["xzOf", packed, "package/package.json"], dist))
  expect(Object.keys(manifest).filter(key => /dependencies|scripts|private|imports/i.test(key))).toEqual([])

  const home = emptyFolder()
  writeFileSync(join(home, "package.json"), "{}")
  asNewcomer("npm", ["install", "--no-audit", "--no-fund", packed], home)
  expect(readdirSync(join(home, "node_modules")).filter(name => !name.startsWith("."))).toEqual(["autoimagemanager"])
  const aim = join(home, "node_modules/.bin/aim")
  expect(asNewcomer(aim, ["--version"], home)).toBe(`aim ${version}\n`)
  expect(asNewcomer(aim, ["demo"], home)).toContain("Complete")
}, 120_000)

test("the repository itself is not packed by mistake", () => {
  const { status, stderr } = spawnSync("npm", ["pack", "--dry-run"], { cwd: repository, encoding: "utf8" })
  expect(status).not.toBe(0)
  expect(stderr).toContain("npm run package")
}, 60_000)
