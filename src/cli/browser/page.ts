import { existsSync } from "node:fs"
import { join } from "node:path"
import { pathToFileURL } from "node:url"

/** The built page: beside the bundle in a package or image. A clone builds it at first use. */
export async function pageFolder(say: (line: string) => void): Promise<string> {
  const built = join(import.meta.dirname, "page")
  if (existsSync(join(built, "index.html"))) return built
  // By its path: the builder is no part of the program, and is not bundled.
  const builder = pathToFileURL(join(import.meta.dirname, "../../../tools/dashboard.ts")).href
  const { pageFolder: build } = (await import(builder)) as { pageFolder(say: (line: string) => void): Promise<string> }
  return build(say)
}
