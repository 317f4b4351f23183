import { execFile, spawn } from "node:child_process"
import { once } from "node:events"
import { cpSync, globSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join, relative } from "node:path"
import { promisify } from "node:util"
import { afterAll, beforeAll, describe, expect, test } from "vitest"
import { parse, parseAllDocuments } from "yaml"
import { serveHttp } from "#cluster-sim/http/serve.ts"
import { createCluster, type Json } from "#cluster-sim/index.ts"
import { createClient } from "#runtime/client/index.ts"
import { systemClock } from "#runtime/clock.ts"
import { seededRandom } from "#runtime/random.ts"
import { core } from "#runtime/resource.ts"

// A copy of this repository with one more kind: a line in src/api/names.ts and the folders of the kind. Everything else
// must follow from them.

const root = join(import.meta.dirname, "../..")
const toy = join(root, "test/support/toy-kind")
const copy = mkdtempSync(join(tmpdir(), "aim-toy-kind-"))
const read = (path: string) => readFileSync(join(copy, path), "utf8")
/** With a cache of compiled code: a dozen processes load the same files. */
const env = { HOME: copy, KUBECONFIG: join(copy, "kubeconfig"), NODE_COMPILE_CACHE: join(copy, "compiled") }
const node = (...args: string[]) => promisify(execFile)(process.execPath, args, { cwd: copy, env })

const configMaps = core("configmaps", "ConfigMap")
const cluster = createCluster({ clock: systemClock })
const client = createClient({
  transport: { send: cluster.transport.send, close: () => {} },
  clock: systemClock,
  random: seededRandom(1),
})
let serving: Awaited<ReturnType<typeof serveHttp>>
const main = join(copy, "src/cli/main.ts")

/** The command line of the copy. Returns what it prints. */
const aim = async (...args: string[]) => {
  const { stdout } = await node(main, ...args)
  return stdout
}

const apply = async (object: Json) =>
  client.patch((await client.discover(object.apiVersion, object.kind))!, object.metadata, {
    type: "apply",
    body: object,
    force: true,
  })

beforeAll(async () => {
  for (const path of ["src", "tools", "docs", "charts", "examples", "test/support", "package.json"])
    cpSync(join(root, path), join(copy, path), { recursive: true, filter: from => !from.endsWith(".test.ts") })
  symlinkSync(join(root, "node_modules"), join(copy, "node_modules"))
  const [line = ""] = /^ {2}Motto: .*\n/m.exec(readFileSync(join(toy, "src/api/names.ts"), "utf8")) ?? []
  writeFileSync(
    join(copy, "src/api/names.ts"),
    read("src/api/names.ts").replace(/^ {2}AlternateImageSource: .*\n/m, `$&${line}`),
  )
  const isOwn = (from: string) => relative(toy, from) !== "src/api/names.ts"
  for (const path of ["src", "docs"]) cpSync(join(toy, path), join(copy, path), { recursive: true, filter: isOwn })
  await node("tools/generate.ts")

  serving = await serveHttp(cluster.transport)
  const context = { cluster: "it", namespace: "shop" }
  const kubeconfig = {
    "current-context": "it",
    clusters: [{ name: "it", cluster: { server: serving.url } }],
    contexts: [{ name: "it", context }],
  }
  writeFileSync(env.KUBECONFIG, JSON.stringify(kubeconfig))
  await apply(parse(read("charts/aim/crds/mottos.yaml")))
  await apply({ apiVersion: "v1", kind: "Namespace", metadata: { name: "shop" } })
  const map = (name: string, labels: Json) => ({
    apiVersion: "v1",
    kind: "ConfigMap",
    metadata: { name, namespace: "shop", labels },
  })
  for (const each of [map("a", { motto: "" }), map("other", {})]) await apply(each)
  // The YAML of its page.
  await apply(parse(/```yaml\n(.*?)```/s.exec(read("docs/kinds/motto.md"))![1]!))
}, 120_000)

afterAll(async () => {
  await serving?.close()
  client.close()
  rmSync(copy, { recursive: true, force: true })
})

test("one kind is little work: the whole of it, with its campaign of faults, is under 150 lines", () => {
  const lines = (path: string) => readFileSync(path, "utf8").trimEnd().split("\n").length
  const files = globSync("src/*/**/*.ts", { cwd: toy }).filter(path => path !== "src/api/names.ts")
  expect(files).toHaveLength(4)
  const campaign = /^describe\("every fault.*?^\}\)$/ms.exec(
    readFileSync(join(root, "test/simulation/kind-controller.test.ts"), "utf8"),
  )![0]
  const registration = 1
  const all = files.map(path => lines(join(toy, path))).reduce((sum, count) => sum + count, 0)
  expect(registration + all + campaign.split("\n").length).toBeLessThan(150)
})

describe("what is generated has it", () => {
  test("and is stable", () => node("tools/generate.ts", "--check"))

  test("its definition", () =>
    expect(parse(read("charts/aim/crds/mottos.yaml"))).toMatchObject({
      metadata: { name: "mottos.autoimagemanager.io" },
      spec: { scope: "Namespaced", names: { kind: "Motto", shortNames: ["mo"] } },
    }))

  test("the rights of its controller, in the chart", () => {
    const roles = globSync("charts/aim/templates/*", { cwd: copy }).map(read).join("\n")
    expect(roles).toContain("- mottos/status\n")
  })

  test("its page and the index of pages", () => {
    expect(read("docs/kinds/motto.md")).toContain("| `UpToDate` | Every ConfigMap has the text. |")
    expect(read("docs/kinds/motto.md")).toContain("| `spec.text` |")
    expect(read("docs/kinds/README.md")).toContain(
      "| [Motto](motto.md) | `mo`, `motto`, `mottos` | namespace | A Motto is",
    )
  })

  test("its metrics, a dashboard for them, and the alert about controllers that fail", () => {
    expect(read("docs/metrics.md")).toContain("## Every metric of Motto\n")
    expect(read("docs/metrics.md")).toContain("| `aim_motto_differing` | gauge | `motto` | ConfigMaps |")
    expect(read("charts/aim/dashboards/motto.json")).toContain("aim_motto_differing{")
    expect(read("charts/aim/rules/aim.yaml")).toContain("serviceimage|alternateimagesource|motto")
  })
})

describe("the command line knows it", () => {
  test("manifests: the definition, and rights for what its controller declares", async () => {
    const objects: Json[] = parseAllDocuments(await aim("manifests")).map(document => document.toJS())
    const names = objects.map(({ kind, metadata }) => `${kind}/${metadata.name}`)
    expect(names).toContain("CustomResourceDefinition/mottos.autoimagemanager.io")
    // ConfigMaps are in the role that a namespace grants.
    const roles = objects.filter(({ metadata }) => ["aim-controller-base", "aim-target-base"].includes(metadata.name))
    const granted = roles
      .flatMap(({ rules }): Json[] => rules ?? [])
      .filter(({ resources }) => resources.some((each: string) => /^mottos|^configmaps/.test(each)))
    expect(granted.map(({ resources, verbs }) => [resources, verbs])).toEqual(
      expect.arrayContaining([
        [["configmaps"], expect.arrayContaining(["list", "watch", "patch"])],
        [expect.arrayContaining(["mottos"]), ["list", "watch"]],
        [expect.arrayContaining(["mottos/status"]), ["update"]],
      ]),
    )
  })

  test("completion", async () => {
    const [script, words, names] = await Promise.all([
      aim("completion", "zsh"),
      aim("__complete", "objects", "mo"),
      aim("__complete", "ours", "mo/"),
    ])
    expect(script).toContain("_aim_mottos() { _aim_ask mottos }")
    expect([words, names]).toEqual(["mo/\n", "mo/ours\n"])
  })

  const dump = join(copy, "cluster.dump")

  test("before a controller runs: get, status, wait, plan, why, and the same from a dump", async () => {
    const [table, status, plan, why, plans] = await Promise.all([
      aim("get", "mo"),
      aim("status", "mottos"),
      aim("plan", "mo/ours"),
      aim("why", "motto/ours"),
      aim("plan", "mo", "-o", "json"),
      aim("dump", "-o", dump),
    ])
    expect(table).toMatch(/^NAME +STATE +REASON +AGE\nours +NotSeenYet/)
    expect(status).toBe("mo/ours -n shop NotSeenYet (no controller has observed it yet)\n")
    expect(plan).toBe("mo/ours -n shop  Writing\n  1 of 1 differ\n  next:\n    ConfigMap a gets the text\n")
    expect(why).toMatch(/^Writing.*\n1 of 1 differ. ConfigMaps get the text.\nNext: ConfigMap a gets the text.\n$/)
    expect(JSON.parse(plans)).toEqual([
      {
        name: "ours",
        namespace: "shop",
        reason: "Writing",
        message: "1 of 1 differ",
        next: ["ConfigMap a gets the text"],
      },
    ])
    await expect(aim("wait", "mo/ours", "--timeout", "0")).rejects.toThrow("not ready now")
    const later = await Promise.all([aim("plan", "mo", "--from", dump), aim("why", "mo/ours", "--from", dump)])
    expect(later.map(text => text.split("\n").slice(-3))).toEqual([plan, why].map(text => text.split("\n").slice(-3)))
    expect(readFileSync(dump, "utf8")).not.toContain('"other"')
  })

  test("--kinds runs its controller, which does what the plan said", async () => {
    const running = spawn(process.execPath, [main, "controller", "--kinds", "mo", "--no-leader-elect"], {
      env,
      stdio: "ignore",
    })
    const ended = once(running, "exit")
    await aim("wait", "mo/ours", "--timeout", "100s")
    running.kill("SIGTERM")
    expect(await ended).toEqual([0, null])
    const { data } = await client.get<Json>(configMaps, { name: "a", namespace: "shop" })
    expect(data).toEqual({ motto: "slow is smooth" })
    expect(await aim("get", "mo", "-A")).toMatch(/^NAMESPACE .*\nshop +ours +Ready +UpToDate/)
  })
})
