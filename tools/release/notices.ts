import { readdirSync, readFileSync } from "node:fs"
import { join, sep } from "node:path"

/** The licences of the packages whose code is in the bundle, as their authors ask for. */
export function noticesFor(modules: readonly string[]): string {
  const packages = new Set(modules.flatMap(id => packageFolder(id) ?? []))
  const sections = [...packages].sort().map(folder => {
    const { name, version, license } = JSON.parse(readFileSync(join(folder, "package.json"), "utf8"))
    const files = readdirSync(folder).filter(file => /^(licen[cs]e|notice|copying)/i.test(file))
    if (files.length === 0) throw new Error(`${name} is bundled but has no licence file to pass on`)
    const texts = files.sort().map(file => readFileSync(join(folder, file), "utf8").trim())
    return [`${name} ${version} (${license})`, ...texts].join("\n\n")
  })
  return `${sections.join(`\n\n${"-".repeat(80)}\n\n`)}\n`
}

/** `…/node_modules/@scope/name` for a file below it; nothing for a file of ours or of the bundler's own. */
function packageFolder(id: string): string | undefined {
  const path = id.replace(/^\0/, "").replace(/\?.*$/, "")
  const at = path.lastIndexOf(`${sep}node_modules${sep}`)
  if (at < 0) return undefined
  const [scope = "", name = ""] = path.slice(at + "/node_modules/".length).split(sep)
  return join(path.slice(0, at), "node_modules", scope, scope.startsWith("@") ? name : "")
}
