import { execFile } from "node:child_process"
import { promisify } from "node:util"
import { expect, test } from "vitest"
import { serve } from "#egress/test-servers.ts"
import type { Reply } from "#runtime/client/test-server.ts"
import { hosts } from "./test-hostile-hosts.ts"

const script = new URL("./test-hostile-hosts.ts", import.meta.url).href
const length = 4 * 1024 * 1024

/** Tells no digest, so that the manifest has to be read, and ends it one byte too early: never. */
const stops: Reply = ({ method }, response) => {
  response.writeHead(200, { "content-type": "application/vnd.oci.image.index.v1+json", "content-length": length })
  if (method === "HEAD") response.end()
  else response.write(body)
}
const body = Buffer.alloc(length - 1, " ")

test("registries whose answers never end leave the process below 200 MiB", async () => {
  const server = await serve(stops)
  const code = `import(${JSON.stringify(script)}).then(async m => console.log(JSON.stringify(await m.askAll(${server.port}))))`
  // With the controller's own flag. What is left beyond 95 MiB at rest is what V8 has not collected yet.
  const { stdout } = await promisify(execFile)(process.execPath, ["--optimize-for-size", "-e", code])
  const { classes, peakMiB } = JSON.parse(stdout)
  expect(classes).toEqual(["Timeout"])
  // On a machine that is busy, some are too late for it.
  expect(server.seen.filter(({ method }) => method === "GET").length).toBeGreaterThan(hosts / 2)
  expect(peakMiB).toBeLessThan(200)
})
