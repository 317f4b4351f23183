import { execFile } from "node:child_process"
import { join } from "node:path"
import { describe, expect, test } from "vitest"

const root = join(import.meta.dirname, "../..")

/** What the linter says about this source if it stood at `path`. */
function lint(path: string, source: string): Promise<string> {
  return new Promise(resolve => {
    const biome = join(root, "node_modules/.bin/biome")
    const child = execFile(biome, ["lint", `--stdin-file-path=${path}`], { cwd: root }, (_error, out, err) =>
      resolve(out + err),
    )
    child.stdin?.end(source)
  })
}

const imports = (from: string) => `import * as other from "${from}"\nexport const names = Object.keys(other)\n`

describe("imports point one way", () => {
  const forbidden = [
    ["src/lib/a.ts", "#api/kind.ts"],
    ["src/api/a.ts", "#core/fleet.ts"],
    ["src/core/a.ts", "#runtime/clock.ts"],
    ["src/core/a.ts", "../runtime/clock.ts"],
    ["src/runtime/a.ts", "#api/kind.ts"],
    ["src/runtime/client/a.ts", "../../core/fleet.ts"],
    ["src/controllers/web/a.ts", "#cli/main.ts"],
    ["src/cluster-sim/a.ts", "#api/kind.ts"],
    ["src/cluster-sim/a.ts", "#controllers/all.ts"],
    ["src/controllers/a.ts", "#tools/kube/cluster.ts"],
  ]
  for (const [path, from] of forbidden)
    test(`${path} may not import ${from}`, async () => {
      expect(await lint(path!, imports(from!))).toContain("noRestrictedImports")
    })

  const allowed = [
    ["src/core/a.ts", "#api/kind.ts"],
    ["src/controllers/web/a.ts", "#runtime/clock.ts"],
    ["src/cli/a.ts", "#controllers/all.ts"],
    ["src/runtime/client/a.ts", "../clock.ts"],
  ]
  for (const [path, from] of allowed)
    test(`${path} may import ${from}`, async () => {
      expect(await lint(path!, imports(from!))).not.toContain("noRestrictedImports")
    })
})

describe("time and chance come in through the runtime", () => {
  for (const use of ["Date.now()", "new Date()", "Math.random()", "performance.now()", "setTimeout(() => {}, 1)"])
    test(`${use} is refused outside it`, async () => {
      expect(await lint("src/controllers/a.ts", `export const it = ${use}\n`)).toContain("runtime/clock.ts")
      expect(await lint("src/runtime/clock.ts", `export const it = ${use}\n`)).not.toContain("come in through")
    })
  test("reading a written time is not reading the clock", async () => {
    expect(await lint("src/controllers/a.ts", 'export const it = new Date("2026-01-01")\n')).not.toContain(
      "come in through",
    )
  })
})
