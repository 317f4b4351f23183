import { spawn, spawnSync } from "node:child_process"
import { once } from "node:events"
import { existsSync, mkdtempSync, rmSync, writeFileSync } from "node:fs"
import { createServer } from "node:http"
import type { AddressInfo } from "node:net"
import { tmpdir } from "node:os"
import { dirname, join } from "node:path"
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from "vitest"
import { parseAllDocuments } from "yaml"
import manifest from "../../package.json" with { type: "json" }

const root = join(import.meta.dirname, "../..")
const env = {
  PATH: `${dirname(process.execPath)}:${process.env.PATH}`,
  HOME: "/nonexistent",
  AIM_CACHE: process.env.AIM_CACHE ?? "",
}
if (!process.env.AIM_CACHE) delete (env as { AIM_CACHE?: string }).AIM_CACHE

/** As a user would: the real executable, in its own process. */
function aim(line: string, over: Record<string, string> = {}) {
  const { status, stdout, stderr } = spawnSync(join(root, "bin/aim"), line.split(" ").filter(Boolean), {
    encoding: "utf8",
    env: { ...env, ...over },
    timeout: 50_000,
  })
  return { code: status, stdout, stderr }
}

// Each is a process or two, on a machine that may have other things to do.
const patience = { timeout: 60_000 }

describe("the executable", patience, () => {
  test("--version is the version, --help is help, both on stdout", () => {
    expect(aim("--version")).toEqual({ code: 0, stdout: `aim ${manifest.version}\n`, stderr: "" })
    expect(aim("--help")).toMatchObject({ code: 0, stdout: expect.stringContaining("Examples"), stderr: "" })
  })
  test("wrong usage is 2, on stderr, with nothing on stdout", () => {
    for (const line of ["stauts", "wait web", "manifests rbac --for Dicom", "manifests --image UPPER/x"]) {
      const { code, stdout, stderr } = aim(line)
      expect({ line, code, stdout }).toEqual({ line, code: 2, stdout: "" })
      expect(stderr).toMatch(/^aim: /)
      expect(stderr).not.toContain("    at ")
    }
  })
  test("what failed is 1", () => {
    expect(aim("get", { KUBECONFIG: "/nonexistent/config" })).toMatchObject({
      code: 1,
      stdout: "",
      stderr: expect.stringContaining("/nonexistent/config does not exist"),
    })
  })
  test("manifests prints YAML and nothing else, with what was asked for", () => {
    const { code, stdout, stderr } = aim(
      "manifests --for dicoms.services.example.com --image example.com/aim:9 -n elsewhere",
    )
    expect({ code, stderr }).toEqual({ code: 0, stderr: "" })
    const kinds = parseAllDocuments(stdout).map(document => document.toJS().kind)
    expect(kinds).toEqual(
      expect.arrayContaining(["Namespace", "CustomResourceDefinition", "ClusterRole", "Deployment"]),
    )
    expect(stdout).toContain("image: example.com/aim:9\n")
  })
  test("a controller runs no program of a kubeconfig, also outside a pod; a command line does", () => {
    const folder = mkdtempSync(join(tmpdir(), "aim-exec-"))
    onTestFinished(() => rmSync(folder, { recursive: true }))
    const ran = join(folder, "ran")
    const program = join(folder, "plugin")
    writeFileSync(program, `#!/bin/sh\ntouch ${ran}\necho '{}'\n`, { mode: 0o700 })
    const exec = { apiVersion: "client.authentication.k8s.io/v1", command: program, interactiveMode: "Never" }
    const config = {
      apiVersion: "v1",
      kind: "Config",
      "current-context": "c",
      clusters: [{ name: "c", cluster: { server: "https://127.0.0.1:1" } }],
      contexts: [{ name: "c", context: { cluster: "c", user: "u" } }],
      users: [{ name: "u", user: { exec } }],
    }
    const file = join(folder, "config")
    writeFileSync(file, JSON.stringify(config))
    expect(aim("controller", { KUBECONFIG: file })).toMatchObject({
      code: 1,
      stderr: expect.stringContaining("names a program to run, which only a person's command line does"),
    })
    expect(existsSync(ran)).toBe(false)
    aim("get", { KUBECONFIG: file })
    expect(existsSync(ran)).toBe(true)
  })
  test("kubectl aim calls itself that", () => {
    expect(aim("--help", { AIM_PROGRAM: "/usr/bin/kubectl-aim" }).stdout).toContain("kubectl aim grant")
  })
  test("colours come where they are wanted, NO_COLOR first", () => {
    expect(aim("--help", { FORCE_COLOR: "1" }).stdout).toContain("\u001b[")
    expect(aim("--help", { FORCE_COLOR: "1", NO_COLOR: "1" }).stdout).not.toContain("\u001b[")
  })
})

describe("against a server", patience, () => {
  let folder = ""
  let kubeconfig = ""
  const server = createServer((request, response) => {
    response.setHeader("content-type", "application/json")
    if (request.url?.includes("watch=")) return void response.flushHeaders() // nothing happens, for as long as one likes
    if (request.url?.includes("/namespaces/"))
      return void response
        .writeHead(403)
        .end(JSON.stringify({ kind: "Status", code: 403, reason: "Forbidden", message: "no" }))
    const items = [
      {
        metadata: { name: "web", uid: "1", generation: 1 },
        spec: { target: { kind: "Dicom" }, defaultImage: "web:2" },
      },
    ]
    response.end(JSON.stringify({ metadata: { resourceVersion: "7" }, items }))
  })
  beforeAll(async () => {
    folder = mkdtempSync(join(tmpdir(), "aim-cli-"))
    kubeconfig = join(folder, "config")
    server.listen(0, "127.0.0.1")
    await once(server, "listening")
    const { port } = server.address() as AddressInfo
    const cluster = { name: "c", cluster: { server: `http://127.0.0.1:${port}` } }
    const config = {
      apiVersion: "v1",
      kind: "Config",
      "current-context": "c",
      clusters: [cluster],
      contexts: [{ name: "c", context: { cluster: "c", user: "" } }],
      users: [],
    }
    writeFileSync(kubeconfig, JSON.stringify(config))
  })
  afterAll(() => {
    server.closeAllConnections()
    server.close()
    rmSync(folder, { recursive: true })
  })

  /** The server lives in this process, so it must not be waited for synchronously. */
  async function talk(line: string, onStderr: (text: string, child: ReturnType<typeof spawn>) => void = () => {}) {
    const child = spawn(join(root, "bin/aim"), line.split(" "), { env: { ...env, KUBECONFIG: kubeconfig } })
    let stdout = ""
    let stderr = ""
    child.stdout.setEncoding("utf8").on("data", text => (stdout += text))
    child.stderr.setEncoding("utf8").on("data", text => {
      stderr += text
      onStderr(stderr, child)
    })
    const [code] = await once(child, "close")
    return { code, stdout, stderr }
  }

  test("the answer is on stdout, progress on stderr, and --quiet keeps the progress away", async () => {
    expect(await talk("get -o name")).toEqual({ code: 0, stdout: "serviceimage.autoimagemanager.io/web\n", stderr: "" })
    expect(await talk("wait si/web --timeout 0")).toMatchObject({
      code: 1,
      stdout: "",
      stderr: expect.stringMatching(/^si\/web NotSeenYet.*\naim: not complete now/),
    })
    expect((await talk("wait si/web --timeout 0 --quiet")).stderr).toMatch(/^aim: not complete now/)
  })
  test("a wait that is interrupted ends with 130, without a complaint", async () => {
    const { code, stderr } = await talk("wait si/web", (text, child) => {
      if (text.includes("NotSeenYet")) child.kill("SIGINT")
    })
    expect(code).toBe(130)
    expect(stderr).not.toContain("aim:")
  })
  test("without the right to grant, the message names the accounts that have it", async () => {
    expect(await talk("grant shop")).toMatchObject({
      code: 1,
      stdout: "",
      stderr: expect.stringContaining("administrator of the namespace"),
    })
  })
})
