import { execFileSync } from "node:child_process"
import { chmodSync, cpSync, mkdtempSync, readFileSync, rmSync, utimesSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { expect, onTestFinished, test } from "vitest"
import { repository } from "../kube/folders.ts"
import { sectionOf } from "./changelog.ts"
import { packChart } from "./chart.ts"
import { type Lock, sbom } from "./sbom.ts"

function emptyFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), "aim-release-"))
  onTestFinished(() => rmSync(folder, { recursive: true }))
  return folder
}

test("the chart is packed to the same bytes from files of other times and permissions, without what .helmignore names", async () => {
  const folder = emptyFolder()
  const [first, second, copy] = ["1.tgz", "2.tgz", "copy"].map(name => join(folder, name)) as [string, string, string]
  await packChart(first, new Date(0))
  cpSync(join(repository, "charts/aim"), copy, { recursive: true })
  chmodSync(join(copy, "values.yaml"), 0o600)
  utimesSync(join(copy, "Chart.yaml"), 1e9, 1e9)
  await packChart(second, new Date(0), copy)
  expect(readFileSync(second).equals(readFileSync(first))).toBe(true)

  const names = execFileSync("tar", ["tzf", first], { encoding: "utf8" }).trim().split("\n")
  for (const name of ["Chart.yaml", "values.yaml", "values.schema.json", "templates/crds.yaml", "templates/NOTES.txt"])
    expect(names).toContain(`aim/${name}`)
  const ignored = readFileSync(join(repository, "charts/aim/.helmignore"), "utf8").match(/^[^#\n].*$/gm)!
  expect(ignored).toEqual(["crds/"])
  expect(names.filter(name => name.startsWith("aim/crds/"))).toEqual([])
})

test("a version that the changelog says nothing of is not released", () => {
  const changelog =
    "# Changelog\n\n## 0.2.0\n\n## 0.1.1, 2026-01-02\n\n- A new kind.\n\n## 0.1.0, unreleased\n\n- The first.\n"
  expect(sectionOf(changelog, "0.1.1")).toBe("- A new kind.")
  expect(sectionOf(changelog, "0.1.0")).toBe("- The first.")
  expect(() => sectionOf(changelog, "0.1")).toThrow('CHANGELOG.md has no section "## 0.1"')
  expect(() => sectionOf(changelog, "0.2.0")).toThrow('the section "## 0.2.0" of CHANGELOG.md is empty')
})

test("the bill of materials names every package that runs, and none of the development tools", () => {
  const read = (file: string) => JSON.parse(readFileSync(join(repository, file), "utf8"))
  const lock: Lock = read("package-lock.json")
  const libc = { name: "libc6", version: "2.36-9+deb12u14" }
  const node = { version: "v26.10.0", binary: "", licence: "", libraries: [], packages: [libc] }
  const nodes = (["amd64", "arm64"] as const).map(architecture => ({ ...node, architecture }))
  // biome-ignore lint/suspicious/noExplicitAny: the shape of a document that other programs read.
  const bill: any = sbom({ manifest: read("package.json"), lock, nodes, created: new Date(0) })
  const named = bill.packages.map((each: { name: string; versionInfo: string }) => `${each.name} ${each.versionInfo}`)
  // What only builds is not in a release, though a clone installs it to build the dashboard's page.
  const builds = /rolldown/
  const running = Object.entries(lock.packages).filter(([path, { dev }]) => path && !dev && !builds.test(path))
  expect(running.length).toBeGreaterThan(8)
  for (const [path, { version }] of running) expect(named).toContain(`${path.split("node_modules/").at(-1)} ${version}`)
  expect(named.join()).not.toMatch(/vitest|rolldown/)
  expect(named).toHaveLength(running.length + 1 + 2 * 2)
  expect(bill.creationInfo.created).toBe("1970-01-01T00:00:00Z")

  // Every id is there once and is what SPDX allows, and no relation leads nowhere.
  const ids = bill.packages.map((each: { SPDXID: string }) => each.SPDXID)
  expect(new Set(ids).size).toBe(ids.length)
  for (const id of ids) expect(id).toMatch(/^SPDXRef-[A-Za-z0-9.-]+$/)
  for (const { spdxElementId, relatedSpdxElement } of bill.relationships) {
    expect([...ids, "SPDXRef-DOCUMENT"]).toContain(spdxElementId)
    expect(ids).toContain(relatedSpdxElement)
  }
  const purls = bill.packages.map(
    (each: { externalRefs: { referenceLocator: string }[] }) => each.externalRefs[0]?.referenceLocator,
  )
  expect(purls).toContain("pkg:npm/%40marcbachmann/cel-js@8.0.0")
  expect(purls).toContain("pkg:deb/debian/libc6@2.36-9%2Bdeb12u14?arch=arm64")
})
