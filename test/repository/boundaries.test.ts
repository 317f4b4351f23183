import { execFile } from "node:child_process"
import { cp, mkdir, mkdtemp, rm, writeFile } from "node:fs/promises"
import { tmpdir } from "node:os"
import { dirname, join } from "node:path"
import { promisify } from "node:util"
import { afterAll, beforeAll, expect, test } from "vitest"

const root = join(import.meta.dirname, "../..")
const imports = (from: string) => `import * as other from "${from}"\n\nexport const names = Object.keys(other)\n`
const uses = (expression: string) => `export const it = ${expression}\n`

const direction = "lint/style/noRestrictedImports"
const machine = "plugin" // of tools/lint

/** Each source, where it would stand, and what the linter must say about it (or nothing). */
const cases: { path: string; source: string; finds?: string }[] = [
  { path: "src/lib/a.ts", source: imports("#api/kind.ts"), finds: direction },
  { path: "src/api/a.ts", source: imports("#core/fleet/fleet.ts"), finds: direction },
  { path: "src/core/a.ts", source: imports("#runtime/clock.ts"), finds: direction },
  { path: "src/core/b.ts", source: imports("../runtime/clock.ts"), finds: direction },
  { path: "src/runtime/a.ts", source: imports("#api/kind.ts"), finds: direction },
  { path: "src/runtime/client/a.ts", source: imports("../../core/fleet/fleet.ts"), finds: direction },
  { path: "src/controllers/store/a.ts", source: imports("#cli/main.ts"), finds: direction },
  { path: "src/controllers/store/b.ts", source: imports("#tools/kube/cluster.ts"), finds: direction },
  { path: "src/controllers/store/e.ts", source: imports("../shop/plan.ts"), finds: direction },
  { path: "src/controllers/store/f.ts", source: imports("#controllers/shop/plan.ts"), finds: direction },
  { path: "src/controllers/store/g.ts", source: imports("../grants.ts") },
  { path: "src/controllers/store/plan.ts", source: imports("#runtime/clock.ts"), finds: direction },
  { path: "src/controllers/store/checks.ts", source: imports("#runtime/clock.ts"), finds: direction },
  { path: "src/controllers/shop/plan.ts", source: imports("#core/image/reference.ts") },
  { path: "src/explain/a.ts", source: imports("#cli/main.ts"), finds: direction },
  { path: "src/explain/store/b.ts", source: imports("#controllers/store/plan.ts") },
  { path: "src/egress/a.ts", source: imports("#core/image/reference.ts"), finds: direction },
  { path: "src/egress/b.ts", source: imports("../registry/index.ts"), finds: direction },
  { path: "src/agent/a.ts", source: imports("#egress/connect.ts"), finds: direction },
  { path: "src/egress/c.ts", source: imports("#runtime/clock.ts") },
  { path: "src/registry/c.ts", source: imports("#egress/connect.ts") },
  { path: "src/controllers/store/h.ts", source: imports("#egress/connect.ts") },
  { path: "src/registry/a.ts", source: imports("#controllers/all.ts"), finds: direction },
  { path: "src/core/d.ts", source: imports("#registry/index.ts"), finds: direction },
  { path: "src/runtime/c.ts", source: imports("../registry/index.ts"), finds: direction },
  { path: "src/cluster-sim/c.ts", source: imports("#registry/index.ts"), finds: direction },
  { path: "src/cluster-sim/http/d.ts", source: imports("../apiserver/registry.ts") },
  { path: "src/registry/b.ts", source: imports("#core/image/reference.ts") },
  { path: "src/controllers/store/d.ts", source: imports("#registry/index.ts") },
  { path: "src/cluster-sim/a.ts", source: imports("#api/kind.ts"), finds: direction },
  { path: "src/cluster-sim/b.ts", source: imports("#controllers/all.ts"), finds: direction },
  { path: "src/core/c.ts", source: imports("#api/kind.ts") },
  { path: "src/controllers/store/c.ts", source: imports("#runtime/clock.ts") },
  { path: "src/cli/a.ts", source: imports("#controllers/all.ts") },
  { path: "src/runtime/client/b.ts", source: imports("../clock.ts") },
  { path: "src/controllers/time1.ts", source: uses("Date.now()"), finds: machine },
  { path: "src/controllers/time2.ts", source: uses("new Date()"), finds: machine },
  { path: "src/controllers/time3.ts", source: uses("performance.now()"), finds: machine },
  { path: "src/controllers/time4.ts", source: uses("setTimeout(() => {}, 1)"), finds: machine },
  { path: "src/controllers/chance.ts", source: uses("Math.random()"), finds: machine },
  { path: "src/controllers/written.ts", source: uses('new Date("2026-01-01")') },
  { path: "src/core/inherited1.ts", source: uses("(name: string, labels: object) => name in labels"), finds: machine },
  { path: "src/core/inherited2.ts", source: uses("(labels: object) => !(`a` in labels)") },
  { path: "src/core/inherited3.ts", source: uses('(said: object) => "problem" in said') },
  { path: "src/runtime/clock.ts", source: uses("Date.now()") },
  { path: "src/runtime/random.ts", source: uses("Math.random()") },
]

let folder: string
const found = new Map<string, string[]>()

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "aim-boundaries-"))
  for (const name of ["biome.json", "package.json", "tools/lint"])
    await cp(join(root, name), join(folder, name), { recursive: true })
  for (const { path, source } of cases) {
    await mkdir(dirname(join(folder, path)), { recursive: true })
    await writeFile(join(folder, path), source)
  }
  const biome = join(root, "node_modules/.bin/biome")
  // It exits with 1, because it finds what it is to find.
  const lint = promisify(execFile)(biome, ["lint", "--reporter=json", "--max-diagnostics=none", "src"], { cwd: folder })
  const { stdout } = await lint.catch((error: { stdout: string }) => error)
  const { diagnostics } = JSON.parse(stdout) as { diagnostics: { category: string; location: { path: string } }[] }
  for (const { category, location } of diagnostics)
    found.set(location.path, [...(found.get(location.path) ?? []), category])
})
afterAll(() => rm(folder, { recursive: true, force: true }))

for (const { path, source, finds } of cases)
  test(`${path}: ${source.split("\n")[0]} is ${finds ? "refused" : "fine"}`, () => {
    expect(found.get(path) ?? []).toEqual(finds ? [finds] : [])
  })
