// `npm run bench [-- NAME… [--OPTION…]]`: runs the benchmarks, one after the other, each in a process of its own.
import { spawnSync } from "node:child_process"
import { readdirSync } from "node:fs"
import { basename, join } from "node:path"
import { repository } from "./kube/folders.ts"

const folder = join(repository, "bench")
const names = readdirSync(folder)
  .filter(file => file.endsWith(".ts"))
  .map(file => basename(file, ".ts"))
const options = process.argv.slice(2).filter(word => word.startsWith("-"))
const wanted = process.argv.slice(2).filter(word => !word.startsWith("-"))
if (options.includes("--help")) {
  process.stdout.write(
    `Runs benchmarks; they print ratios measured in one run, because machines differ.\n\n  npm run bench -- [${names.join("] [")}] [--OPTION=VALUE…]\n\nOptions go to the benchmarks named; the head of bench/NAME.ts says which there are.\n`,
  )
  process.exit(0)
}
const unknown = wanted.filter(name => !names.includes(name))
if (unknown.length > 0) {
  process.stderr.write(`there is no benchmark ${unknown.join(", ")}: write ${names.join(", ")}\n`)
  process.exit(2)
}
if (options.length > 0 && wanted.length === 0) {
  process.stderr.write(`${options.join(" ")}: for which benchmark? Name it before its options\n`)
  process.exit(2)
}
let failed = 0
for (const name of wanted.length > 0 ? wanted : names) {
  process.stdout.write(`\n== ${name}\n`)
  const { status } = spawnSync(process.execPath, ["--expose-gc", join(folder, `${name}.ts`), ...options], {
    stdio: "inherit",
  })
  if (status !== 0) failed++
}
process.exit(failed > 0 ? 1 : 0)
