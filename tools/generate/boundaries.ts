import { join } from "node:path"
import type { GeneratedFile } from "./file.ts"

/** Which folders of src each may import, and nothing else. docs/architecture.md draws it. */
const mayImport = {
  lib: [],
  api: ["lib"],
  core: ["lib", "api"],
  runtime: ["lib"],
  egress: ["lib", "runtime"],
  registry: ["lib", "api", "core", "runtime", "egress"],
  hub: ["lib", "api", "core", "runtime", "egress"],
  controllers: ["lib", "api", "core", "runtime", "egress", "registry", "hub"],
  agent: ["lib", "api", "core", "runtime", "registry"],
  policies: ["lib", "api", "core"],
  explain: ["lib", "api", "core", "runtime", "egress", "registry", "controllers"],
  operations: ["lib", "api", "core", "runtime", "explain"],
  web: ["lib", "api", "core", "runtime", "egress", "registry", "controllers", "explain", "operations"],
  "cluster-sim": ["lib", "runtime"],
  cli: [
    ...["lib", "api", "core", "runtime", "egress", "registry", "hub"],
    ...["controllers", "agent", "policies", "explain", "operations", "web", "cluster-sim"],
    "examples", // the one that `aim demo` shows
  ],
  dashboard: ["lib"], // and the types of src/web/wire.ts
} satisfies Record<string, readonly string[]>

const outside = ["tools", "test", "examples"]
const folders = [...Object.keys(mayImport), ...outside]

type Rule = { includes: string[]; group: string[]; message: string }

const rules: Rule[] = [
  ...Object.entries(mayImport).map(([folder, allowed]: [string, readonly string[]]) => ({
    includes: [`src/${folder}/**`],
    group: [
      ...folders
        .filter(each => each !== folder && !allowed.includes(each))
        .flatMap(each => [`#${each}/**`, `**/${each}/**`]),
      // The page runs in a browser: of the server it knows the types of what is said over HTTP.
      ...(folder === "dashboard" ? ["!#web/wire.ts", "!**/web/wire.ts"] : []),
      // Controllers meet through objects in the API. What two of them need moves down to core.
      ...(folder === "controllers" ? ["#controllers/**", "../*/**"] : []),
    ],
    message: `src/${folder} may import only: ${[...allowed, ...(folder === "dashboard" ? ["types of src/web/wire.ts"] : [])].join(", ") || "nothing of src"} (docs/architecture.md, imports).`,
  })),
  // A plan and its checks are pure: no client, no clock, no cache.
  {
    includes: ["src/controllers/*/plan.ts", "src/controllers/*/checks.ts"],
    group: folders
      .filter(each => !["lib", "api", "core", "controllers"].includes(each))
      .flatMap(each => [`#${each}/**`, `**/${each}/**`])
      .concat(["#controllers/**", "../*/**"]),
    message: "plan.ts and checks.ts are pure: they import lib, api, core and their own folder.",
  },
]

/** Biome's rules on imports, from one table. */
export const boundaryFiles = (): GeneratedFile[] => [
  {
    path: join(import.meta.dirname, "../lint/boundaries.generated.json"),
    content: `${JSON.stringify({ overrides: rules.map(overrideOf) }, undefined, 2)}\n`,
  },
]

const overrideOf = ({ includes, group, message }: Rule) => ({
  includes: [...includes, "!**/*.test.ts"],
  linter: {
    rules: { style: { noRestrictedImports: { level: "error", options: { patterns: [{ group, message }] } } } },
  },
})
