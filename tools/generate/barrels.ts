import { existsSync, readdirSync } from "node:fs"
import type { KindNames } from "#api/names.ts"
import { type GeneratedFile, inRepository } from "./file.ts"

/** The files of a repository, as far as the barrels follow from them. */
export type Tree = {
  has(path: string): boolean
  /** The folders in a folder, sorted. */
  foldersIn(path: string): string[]
}

/** The controllers of each program are in a folder of their own: `aim controller`, and `aim agent` on every node. */
const agents = "src/agent"
const programs = ["src/controllers", agents]

/**
 * What joins the kinds to the code: imports that would otherwise be written by hand, in four places, for each kind. A kind
 * is a line of src/api/names.ts; everything else is found by its path. Only the declaration must be there: a kind may
 * have no controller, no explanation and no dashboard of its own, and a controller may have no kind.
 */
export function barrels(names: readonly KindNames[], tree: Tree = thisRepository): GeneratedFile[] {
  const kinds = names.map(({ kind, version }) => ({ kind, folder: kind.toLowerCase(), version }))
  const controllers = programs.flatMap(program => controllersOf(program, kinds, tree))
  const files = {
    "src/api/kinds.generated.ts": [
      'import type { Kind } from "./kind.ts"',
      ...kinds.map(({ kind, folder, version }) => `import { ${kind} } from "./${version}/${folder}/index.ts"`),
      "",
      "/** Every kind of ours. */",
      ...list("kinds: readonly Kind[]", kinds, ({ kind }) => kind),
    ],
    "src/explain/all.generated.ts": [
      'import type { Explained } from "./explained.ts"',
      "",
      "/** How to explain each kind. Loaded when it is asked for. */",
      "export const explanations: Readonly<Record<string, () => Promise<Explained>>> = {",
      ...kinds
        .filter(({ folder }) => tree.has(`src/explain/${folder}/index.ts`))
        .map(({ kind, folder }) => `  ${kind}: async () => (await import("./${folder}/index.ts")).explained,`),
      "}",
    ],
    ...Object.fromEntries(
      programs
        .filter(program => tree.has(program))
        .map(program => [`${program}/all.generated.ts`, programFile(program)]),
    ),
    "tools/generate/kinds.generated.ts": [
      ...kinds.map(({ folder, version }) => `import * as ${folder} from "#api/${version}/${folder}/index.ts"`),
      ...measured(controllers, tree).map(({ path, identifier }) => `import { ${identifier} } from "${path}"`),
      ...drawn(controllers, tree).map(
        ({ folder, identifier }) => `import { ${identifier} } from "./monitoring/${folder}.ts"`,
      ),
      "",
      "/** What each kind exports, for its page. */",
      ...record("declared", kinds, ({ folder }) => folder),
      "",
      "/** The metrics of each controller. */",
      ...record(
        "metrics",
        measured(controllers, tree).filter(({ isAgents }) => !isAgents),
        ({ folder, identifier }) => `${property(folder)}: ${identifier}`,
      ),
      "",
      "/** The metrics of each controller of the agents: every node has a process that exports them. */",
      ...record(
        "agentMetrics",
        measured(controllers, tree).filter(({ isAgents }) => isAgents),
        ({ folder, identifier }) => `${property(folder)}: ${identifier}`,
      ),
      "",
      "/** Dashboards that people drew. The others follow from the metrics. */",
      ...record(
        "dashboards",
        drawn(controllers, tree),
        ({ folder, identifier }) => `${property(folder)}: ${identifier}`,
      ),
    ],
  }
  const missing = kinds
    .map(({ folder, version }) => `src/api/${version}/${folder}/index.ts`)
    .find(path => !tree.has(path))
  if (missing) throw new Error(`src/api/names.ts registers a kind that is not declared: there is no ${missing}`)
  return Object.entries(files).map(([path, lines]) => ({
    path: inRepository(path),
    content: `${["// Generated from src/api/names.ts and the folders of the kinds by npm run generate.", ...lines].join("\n")}\n`,
  }))

  function programFile(program: string): string[] {
    const own = controllers.filter(controller => controller.program === program)
    return [
      'import type { Controller } from "#runtime/controller.ts"',
      ...own.map(
        ({ folder, identifier }) => `import { create${identifier}Controller } from "./${folder}/controller.ts"`,
      ),
      'import type { Surroundings } from "./surroundings.ts"',
      "",
      "/** What makes the controllers of this program: those of kinds in the order of the kinds, then the others by name. */",
      ...list(
        "creators: readonly ((surroundings: Surroundings) => Controller)[]",
        own,
        ({ identifier }) => `create${identifier}Controller`,
      ),
    ]
  }
}

const apiVersion = "v1alpha1"

type Registered = { kind: string; folder: string }
type Found = { program: string; folder: string; identifier: string }

/** Every folder of a program with a `controller.ts`: the folder of a kind, or one without a kind. */
function controllersOf(program: string, kinds: readonly Registered[], tree: Tree): Found[] {
  const folders = tree.foldersIn(program).filter(folder => tree.has(`${program}/${folder}/controller.ts`))
  // A kind that is declared and not registered yet is not part of a program.
  const isDeclared = (folder: string) => tree.has(`src/api/${apiVersion}/${folder}/index.ts`)
  const others = folders.filter(folder => !kinds.some(kind => kind.folder === folder) && !isDeclared(folder))
  return [
    ...kinds
      .filter(({ folder }) => folders.includes(folder))
      .map(({ kind, folder }) => ({ program, folder, identifier: kind })),
    ...others.map(folder => ({ program, folder, identifier: pascal(folder) })),
  ]
}

const measured = (controllers: readonly Found[], tree: Tree) =>
  controllers
    .filter(({ program, folder }) => tree.has(`${program}/${folder}/metrics.ts`))
    .map(({ program, folder, identifier }) => ({
      folder,
      isAgents: program === agents,
      path: `${program.replace("src/", "#")}/${folder}/metrics.ts`,
      identifier: `${camel(identifier)}Metrics`,
    }))

const drawn = (controllers: readonly Found[], tree: Tree) =>
  controllers
    .filter(({ folder }) => tree.has(`tools/generate/monitoring/${folder}.ts`))
    .map(({ folder, identifier }) => ({ folder, identifier: `${camel(identifier)}Dashboard` }))

/** `in-place-update` as `InPlaceUpdate`. */
const pascal = (folder: string) => folder.replace(/(?:^|-)(\w)/g, (_, letter: string) => letter.toUpperCase())
const camel = (name: string) => name.charAt(0).toLowerCase() + name.slice(1)
const property = (folder: string) => (folder.includes("-") ? JSON.stringify(folder) : folder)

const list = <T>(declaration: string, items: readonly T[], line: (item: T) => string) => [
  `export const ${declaration} = [`,
  ...items.map(item => `  ${line(item)},`),
  "]",
]

const record = <T>(name: string, items: readonly T[], line: (item: T) => string) => [
  `export const ${name} = {`,
  ...items.map(item => `  ${line(item)},`),
  "}",
]

const thisRepository: Tree = {
  has: path => existsSync(inRepository(path)),
  foldersIn: path =>
    existsSync(inRepository(path))
      ? readdirSync(inRepository(path), { withFileTypes: true })
          .filter(entry => entry.isDirectory())
          .map(({ name }) => name)
          .sort()
      : [],
}
