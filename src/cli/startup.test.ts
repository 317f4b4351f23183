import { spawn } from "node:child_process"
import { once } from "node:events"
import { mkdtempSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import type { Readable } from "node:stream"
import { expect, onTestFinished, test } from "vitest"
import { serveHttp } from "#cluster-sim/http/serve.ts"

/** Writes what was loaded, of Node, of packages and of ours, when the process ends. */
const recorder = `
import { registerHooks } from "node:module"
import { writeSync } from "node:fs"
const loaded = new Set()
registerHooks({ load(url, context, next) { loaded.add(url); return next(url, context) } })
process.on("exit", () => {
  const builtin = process.moduleLoadList.filter(name => name.startsWith("NativeModule ")).map(name => name.slice(13))
  writeSync(3, JSON.stringify([...builtin, ...loaded]))
})`

/** What one call of aim loads: names of Node's own modules, names of packages, and paths below src. */
async function loadedBy(
  args: string[],
  { env = {}, entry = "main.ts" }: { env?: Record<string, string>; entry?: string } = {},
) {
  const child = spawn(
    process.execPath,
    [`--import=data:text/javascript,${encodeURIComponent(recorder)}`, join(import.meta.dirname, entry), ...args],
    { env: { ...env, HOME: "/nonexistent" }, stdio: ["ignore", "ignore", "pipe", "pipe"] },
  )
  const closed = once(child, "close")
  const texts = await Promise.all([child.stderr!, child.stdio[3] as Readable].map(stream => stream.toArray()))
  const [stderr, record] = texts.map(parts => Buffer.concat(parts).toString())
  const [code] = await closed
  expect({ stderr, code }).toEqual({ stderr: "", code: 0 })
  const all: string[] = JSON.parse(record!)
  return {
    node: all.filter(name => !name.includes(":")),
    packages: [...new Set(all.flatMap(url => /node_modules\/((?:@[^/]+\/)?[^/]+)/.exec(url)?.[1] ?? []))].sort(),
    ours: all.flatMap(url => /\/src\/(.*)/.exec(url)?.[1] ?? []),
  }
}

// Each of these takes longer to load than everything else that a command needs.
const heavy = ["internal/deps/undici/undici", "crypto", "tls", "https", "zlib"]

test("--version loads the command line's own parts and nothing heavy", async () => {
  const { node, packages, ours } = await loadedBy(["--version"])
  expect(node).not.toEqual(expect.arrayContaining(["http"]))
  expect(heavy.filter(name => node.includes(name))).toEqual([])
  expect(packages).toEqual(["commander"])
  expect(ours.filter(path => /^(api|core|controllers|registry|cluster-sim|cli\/commands)/.test(path))).toEqual([])
})

test("status loads its own command, one YAML parser, and HTTP without TLS where the server is plain", async () => {
  const answer = {
    apiVersion: "v1",
    kind: "List",
    metadata: { resourceVersion: "1" },
    items: [{ metadata: { name: "a" }, spec: {} }],
  }
  const serving = await serveHttp({
    send: async () => ({
      status: 200,
      headers: { "content-type": "application/json" },
      body: (async function* () {
        yield Buffer.from(JSON.stringify(answer))
      })(),
    }),
    close() {},
  })
  const folder = mkdtempSync(join(tmpdir(), "aim-startup-"))
  onTestFinished(async () => {
    rmSync(folder, { recursive: true })
    await serving.close()
  })
  const KUBECONFIG = join(folder, "kubeconfig")
  const [cluster, context] = [{ server: serving.url }, { cluster: "it" }]
  writeFileSync(
    KUBECONFIG,
    JSON.stringify({
      "current-context": "it",
      clusters: [{ name: "it", cluster }],
      contexts: [{ name: "it", context }],
    }),
  )
  const { node, packages, ours } = await loadedBy(["status"], { env: { KUBECONFIG } })
  expect(node).toContain("http")
  expect(heavy.filter(name => node.includes(name))).toEqual([])
  expect(packages).toEqual(["commander", "yaml"])
  expect(ours.filter(path => /^(controllers|registry|cluster-sim)/.test(path))).toEqual([])
})

test("the controller does without undici, which would be 11 MB for as long as it runs", async () => {
  const { node } = await loadedBy([], { entry: "commands/controller.ts" })
  expect(node).toContain("http")
  expect(node).not.toContain("internal/deps/undici/undici")
})
