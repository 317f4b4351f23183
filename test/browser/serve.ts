import { readFileSync } from "node:fs"
import { createServer } from "node:http"
import type { AddressInfo } from "node:net"
import { extname, join } from "node:path"

const types: Record<string, string> = { ".html": "text/html", ".js": "text/javascript", ".css": "text/css" }

/** The policy of the real server, so that a story that would break it fails. */
export const policy =
  "default-src 'none'; script-src 'self'; worker-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; " +
  "base-uri 'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types aim"

/** Serves a folder on loopback. */
export async function serveFolder(folder: string): Promise<{ address: string; close: () => Promise<void> }> {
  const server = createServer((request, response) => {
    const path = new URL(request.url ?? "/", "http://localhost").pathname
    const name = path === "/" ? "index.html" : path.slice(1)
    try {
      if (!/^(index\.html|assets\/[\w.-]+)$/.test(name)) throw new Error("not a file of the page")
      const type = types[extname(name)] ?? "application/octet-stream"
      const body = readFileSync(join(folder, name))
      response.writeHead(200, { "content-type": type, "content-security-policy": policy }).end(body)
    } catch {
      response.writeHead(404).end()
    }
  })
  await new Promise<void>(resolve => server.listen(0, "127.0.0.1", resolve))
  const { port } = server.address() as AddressInfo
  const close = () => new Promise<void>(resolve => server.close(() => resolve()))
  return { address: `http://127.0.0.1:${port}/`, close }
}
