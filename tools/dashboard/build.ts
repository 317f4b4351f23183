import { createHash } from "node:crypto"
import { mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { rolldown } from "rolldown"
import { repository } from "../kube/folders.ts"

const source = join(repository, "src/dashboard")

/** What was built: the modules of which it consists name the packages whose licences must be passed on. */
export type BuiltPage = { files: string[]; modules: string[] }

/**
 * Builds the page into `folder`: index.html, and below assets/ scripts and styles with the hash of their content in the
 * name, so that a browser may keep them for ever. Every address in it is relative: it works below any path.
 */
export async function buildPage(folder: string, { stories = false } = {}): Promise<BuiltPage> {
  const entries = stories
    ? { stories: "browser/stories.tsx" }
    : { main: "browser/main.tsx", worker: "browser/worker.ts" }
  await using build = await rolldown({
    cwd: source,
    input: Object.fromEntries(Object.entries(entries).map(([name, file]) => [name, join(source, file)])),
    platform: "browser",
    tsconfig: join(source, "tsconfig.json"),
    transform: { target: "es2023" },
  })
  const { output } = await build.generate({
    format: "esm",
    entryFileNames: "assets/[name]-[hash].js",
    chunkFileNames: "assets/[name]-[hash].js",
    minify: true,
    comments: { legal: false, annotation: false, jsdoc: false },
  })
  const chunks = output.filter(file => file.type === "chunk")
  const files = new Map(chunks.map(chunk => [chunk.fileName, chunk.code]))
  const style = shortened(
    styleSheets()
      .map(name => readFileSync(join(source, name), "utf8"))
      .join("\n"),
  )
  const styleName = `assets/style-${createHash("sha256").update(style).digest("base64url").slice(0, 8)}.css`
  files.set(styleName, style)
  const entryNamed = (name: string) => chunks.find(chunk => chunk.isEntry && chunk.name === name)?.fileName ?? ""
  const main = chunks.find(chunk => chunk.fileName === entryNamed(stories ? "stories" : "main"))!
  const page = readFileSync(join(source, "index.html"), "utf8")
    .replace("STYLE", styleName)
    .replace("SCRIPT", main.fileName)
    .replace("WORKER", entryNamed("worker"))
    .replace("<!-- PRELOAD -->", main.imports.map(name => `<link rel="modulepreload" href="${name}" />`).join("\n    "))
  files.set("index.html", page)

  mkdirSync(join(folder, "assets"), { recursive: true })
  for (const [name, text] of files) writeFileSync(join(folder, name), text)
  return { files: [...files.keys()].sort(), modules: chunks.flatMap(chunk => chunk.moduleIds) }
}

/** In the order of their names: foundations first. */
const styleSheets = () =>
  readdirSync(join(source, "style"))
    .filter(name => name.endsWith(".css"))
    .sort()
    .map(name => join("style", name))

/** Without comments and indentation; the rest is left to compression. */
const shortened = (css: string) =>
  css
    .replaceAll(/\/\*.*?\*\//gs, "")
    .replaceAll(/\s*\n\s*/g, "\n")
    .trim()
