import { readFile } from "node:fs/promises"
import { extname, join } from "node:path"

const types: Readonly<Record<string, string>> = {
  ".html": "text/html; charset=utf-8",
  ".js": "text/javascript; charset=utf-8",
  ".css": "text/css; charset=utf-8",
  ".svg": "image/svg+xml",
  ".png": "image/png",
  ".ico": "image/x-icon",
  ".woff2": "font/woff2",
  ".json": "application/json",
  ".txt": "text/plain; charset=utf-8",
}

export type File = { content: Buffer; type: string; isNamedByContent: boolean }

/** A file of the built page. Only plain names are looked up, so that no path leads out of the folder. */
export async function fileOf(folder: string, path: string): Promise<File | undefined> {
  const name = path === "" ? "index.html" : path
  if (!/^([A-Za-z0-9_-]+(\.[A-Za-z0-9_-]+)*\/)*[A-Za-z0-9_-]+(\.[A-Za-z0-9_-]+)+$/.test(name)) return undefined
  const type = types[extname(name)]
  if (type === undefined) return undefined
  try {
    return {
      content: await readFile(join(folder, name)),
      type,
      isNamedByContent: /-[A-Za-z0-9_-]{8,}\.\w+$/.test(name),
    }
  } catch {
    return undefined
  }
}
