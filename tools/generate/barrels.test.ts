import { relative } from "node:path"
import { expect, test } from "vitest"
import { barrels } from "./barrels.ts"
import { inRepository } from "./file.ts"

const named = (kind: string) => ({
  group: "example.com",
  version: "v1",
  kind,
  plural: `${kind.toLowerCase()}s`,
  scope: "Cluster" as const,
  shortNames: [],
})

/** The barrels of a repository with these files, by path. */
function made(kinds: string[], ...paths: string[]): Record<string, string> {
  const files = barrels(kinds.map(named), {
    has: path => paths.some(each => each === path || each.startsWith(`${path}/`)),
    foldersIn: path => [
      ...new Set(
        paths.filter(each => each.startsWith(`${path}/`)).map(each => each.slice(path.length + 1).split("/")[0]!),
      ),
    ],
  })
  return Object.fromEntries(files.map(({ path, content }) => [relative(inRepository(""), path), content]))
}

const declared = (...folders: string[]) => folders.map(folder => `src/api/v1/${folder}/index.ts`)
const creatorsIn = (text: string | undefined) =>
  [...(text ?? "").matchAll(/^ {2}(create\w+),$/gm)].map(([, name]) => name)

test("kinds are in the order of their registration, whatever the folders are called", () => {
  const files = made(["Zebra", "Ant"], ...declared("ant", "zebra"))
  expect(files["src/api/kinds.generated.ts"]).toContain("= [\n  Zebra,\n  Ant,\n]")
})

test("a kind may have no controller, no explanation and no metrics", () => {
  const files = made(["Ant"], ...declared("ant"), "src/controllers/all.ts")
  expect(creatorsIn(files["src/controllers/all.generated.ts"])).toEqual([])
  expect(files["src/explain/all.generated.ts"]).not.toContain("Ant")
  expect(files["tools/generate/kinds.generated.ts"]).toContain(" metrics = {\n}")
})

test("a controller may have no kind, and comes after those that have one", () => {
  const own = ["in-place-update", "ant"].flatMap(folder =>
    ["controller.ts", "metrics.ts"].map(file => `src/controllers/${folder}/${file}`),
  )
  const files = made(["Ant"], ...declared("ant"), ...own, "src/controllers/shared/parts.ts")
  expect(creatorsIn(files["src/controllers/all.generated.ts"])).toEqual([
    "createAntController",
    "createInPlaceUpdateController",
  ])
  expect(files["tools/generate/kinds.generated.ts"]).toContain('  "in-place-update": inPlaceUpdateMetrics,')
})

test("a second program has a list of its own, with what its controllers need", () => {
  const files = made(
    ["Ant", "Bee"],
    ...declared("ant", "bee"),
    "src/controllers/ant/controller.ts",
    "src/agent/bee/controller.ts",
    "src/agent/bee/metrics.ts",
  )
  expect(creatorsIn(files["src/controllers/all.generated.ts"])).toEqual(["createAntController"])
  expect(creatorsIn(files["src/agent/all.generated.ts"])).toEqual(["createBeeController"])
  const generated = files["tools/generate/kinds.generated.ts"]
  expect(generated).toContain('from "#agent/bee/metrics.ts"')
  expect(generated).toContain(" metrics = {\n}")
  expect(generated).toContain("agentMetrics = {\n  bee: beeMetrics,\n}")
})

test("a program that does not exist has no list", () =>
  expect(made(["Ant"], ...declared("ant"))).not.toHaveProperty("src/agent/all.generated.ts"))

test("a registered kind must be declared", () =>
  expect(() => made(["Ant"])).toThrow("there is no src/api/v1/ant/index.ts"))
