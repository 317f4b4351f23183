import { describe, expect, test } from "vitest"
import { parseAllDocuments } from "yaml"
import type { Json } from "#cluster-sim/index.ts"
import { KubeError } from "#runtime/client/errors.ts"
import { virtualClock } from "#runtime/clock.ts"
import { storedWorld } from "../test-store.ts"
import { testCluster, testWorld } from "../test-world.ts"
import { run } from "./grant.ts"

const apiVersion = "rbac.authorization.k8s.io/v1"
const role: Json = {
  apiVersion,
  kind: "ClusterRole",
  metadata: { name: "aim-target" },
  rules: [{ apiGroups: ["apps"], resources: ["deployments"], verbs: ["patch"] }],
}
const namespace = (name: string): Json => ({ apiVersion: "v1", kind: "Namespace", metadata: { name } })
const binding = (namespace: string | undefined, roleRef: Json, more: Json = {}): Json => ({
  apiVersion,
  kind: namespace ? "RoleBinding" : "ClusterRoleBinding",
  metadata: { name: "aim-target", ...(namespace && { namespace }) },
  roleRef: { apiGroup: "rbac.authorization.k8s.io", ...roleRef },
  subjects: [{ kind: "ServiceAccount", name: "aim-controller", namespace: "aim-system" }],
  ...more,
})
const ours = { kind: "ClusterRole", name: "aim-target" }
const theirs = { kind: "Role", name: "mine" }

const world = (...objects: Json[]) =>
  storedWorld(virtualClock(0), role, namespace("shop"), namespace("lab"), namespace("aim-system"), ...objects)
type World = Awaited<ReturnType<typeof world>>

async function ask({ world, said }: World, words: string[], options: Record<string, unknown> = {}) {
  said.length = 0
  const answer = await run({ arguments: words, options: { controllerNamespace: "aim-system", ...options } }, world)
  return { ...answer, said: [...said] }
}

/** Every Role and RoleBinding there is, as `NAMESPACE KIND NAME`, and what it says. */
async function rights({ client }: World): Promise<Record<string, Json>> {
  const found: Record<string, Json> = {}
  for (const kind of ["Role", "RoleBinding", "ClusterRoleBinding"])
    for (const item of (await client.list((await client.discover(apiVersion, kind))!)).items as Json[])
      found[`${item.metadata.namespace ?? "-"} ${kind} ${item.metadata.name}`] = item
  return found
}

describe("grant", () => {
  test("binds the role in the namespace, says what it allows, and is content the second time", async () => {
    const here = await world()
    const first = await ask(here, ["shop"])
    expect(first.text).toBe("granted: aim-system/aim-controller may change workloads in namespace shop\n")
    expect(first.said).toEqual(["aim-target allows: patch deployments.apps"])
    expect(await rights(here)).toEqual({
      "shop RoleBinding aim-target": expect.objectContaining({
        roleRef: expect.objectContaining(ours),
        subjects: [{ kind: "ServiceAccount", name: "aim-controller", namespace: "aim-system" }],
      }),
    })
    expect((await ask(here, ["shop"])).text).toMatch(/^already granted/)
  })
  test("adds the account to a binding that is there for another, and takes only itself out again", async () => {
    const here = await world()
    await ask(here, ["shop"], { controllerNamespace: "elsewhere" })
    await ask(here, ["shop"])
    const subjects = async () => {
      const found = (await rights(here))["shop RoleBinding aim-target"]
      return found?.subjects.map((subject: Json) => subject.namespace)
    }
    expect(await subjects()).toEqual(["elsewhere", "aim-system"])
    await ask(here, ["shop"], { revoke: true })
    expect(await subjects()).toEqual(["elsewhere"])
    expect((await ask(here, ["shop"], { revoke: true })).text).toBe("nothing to revoke in namespace shop\n")
  })
  test("touches no other binding of the same name, neither to grant nor to revoke", async () => {
    const here = await world(binding("shop", theirs))
    const before = await rights(here)
    await expect(ask(here, ["shop"])).rejects.toThrow("for Role mine: delete it first")
    await expect(ask(here, ["shop"], { revoke: true })).rejects.toThrow(
      "for Role mine: it is not a grant, and is left as it is",
    )
    expect((await ask(here, [], { all: true, revoke: true })).text).toBe("nothing to revoke\n")
    expect(await rights(here)).toEqual(before)
  })
  test("--revoke takes it back, once", async () => {
    const here = await world()
    await ask(here, ["shop"])
    expect((await ask(here, ["shop"], { revoke: true })).text).toBe("revoked: the grant in namespace shop\n")
    expect((await ask(here, ["shop"], { revoke: true })).text).toBe("nothing to revoke in namespace shop\n")
    expect(await rights(here)).toEqual({})
  })
  test("--dry-run and -o print it and touch nothing", async () => {
    const cluster = testCluster()
    const print = (words: string[], options: Json) =>
      run({ arguments: words, options: { controllerNamespace: "aim-system", ...options } }, testWorld(cluster).world)
    const { text } = await print(["a", "b"], { dryRun: true })
    expect(parseAllDocuments(text).map(document => document.toJS().metadata.namespace)).toEqual(["a", "a", "b", "b"])
    const list = JSON.parse((await print(["a"], { output: "json", pullSecrets: ["quay"] })).text)
    expect(list.items.map(({ kind, metadata }: Json) => `${kind} ${metadata.name}`)).toEqual([
      "Role aim-pull-secrets",
      "RoleBinding aim-pull-secrets",
      "RoleBinding aim-target-routes",
      "RoleBinding aim-target",
    ])
    expect(cluster.calls).toEqual([])
  })
  test("without the right, names the accounts that have it", async () => {
    const cluster = testCluster(role as never)
    cluster.fail("create", new KubeError("Forbidden", "attempting to grant extra privileges", { status: 403 }))
    const { world } = testWorld(cluster)
    await expect(run({ arguments: ["shop"], options: { controllerNamespace: "aim-system" } }, world)).rejects.toThrow(
      "holds all rights of aim-target there",
    )
  })
  test("wants one namespace or all, by its name", async () => {
    const here = await world()
    await expect(ask(here, [])).rejects.toThrow("grant needs a NAMESPACE, or --all")
    await expect(ask(here, ["shop"], { all: true })).rejects.toThrow("write one or the other")
    await expect(ask(here, ["Shop"])).rejects.toThrow("Shop is not a namespace")
  })
})

for (const { option, flag, role: ofSecrets, verbs } of [
  { option: "pullSecrets", flag: "--pull-secrets", role: "aim-pull-secrets", verbs: ["get"] },
  { option: "secrets", flag: "--secrets", role: "aim-secrets", verbs: ["get", "list", "watch"] },
])
  describe(`grant ${flag}`, () => {
    const named = (names: string[]) => [{ apiGroups: [""], resources: ["secrets"], resourceNames: names, verbs }]
    test("lets the controllers read the Secrets it names, in a role of the namespace", async () => {
      const here = await world()
      const { text } = await ask(here, ["shop"], { [option]: ["quay,harbor", "quay"] })
      expect(text).toBe(
        "granted: aim-system/aim-controller may change workloads and read Secrets harbor, quay in namespace shop\n",
      )
      const found = await rights(here)
      expect(Object.keys(found).sort()).toEqual([
        `shop Role ${ofSecrets}`,
        `shop RoleBinding ${ofSecrets}`,
        "shop RoleBinding aim-target",
      ])
      expect(found[`shop Role ${ofSecrets}`]!.rules).toEqual(named(["harbor", "quay"]))
      expect(found[`shop RoleBinding ${ofSecrets}`]!.roleRef).toMatchObject({
        kind: "Role",
        name: ofSecrets,
      })
    })
    test("those named last are those it may read; a grant without any leaves them; revoking takes all away", async () => {
      const here = await world()
      await ask(here, ["shop"], { [option]: ["quay"] })
      await ask(here, ["shop"], { [option]: ["harbor"] })
      await ask(here, ["shop"])
      expect((await rights(here))[`shop Role ${ofSecrets}`]!.rules).toEqual(named(["harbor"]))
      await ask(here, ["shop"], { revoke: true })
      expect(await rights(here)).toEqual({})
    })
    test("touches no role of the same name that is not ours", async () => {
      const rules = [{ apiGroups: [""], resources: ["configmaps"], verbs: ["get"] }]
      const mine = { apiVersion, kind: "Role", metadata: { name: ofSecrets, namespace: "shop" }, rules }
      const here = await world(mine)
      await expect(ask(here, ["shop"], { [option]: ["quay"] })).rejects.toThrow(
        `namespace shop has another Role named ${ofSecrets}: delete it first`,
      )
      await ask(here, ["shop"])
      await ask(here, ["shop"], { revoke: true })
      expect(await rights(here)).toEqual({ [`shop Role ${ofSecrets}`]: expect.objectContaining({ rules }) })
    })
    test("wants names of Secrets, and no other way of asking", async () => {
      const here = await world()
      await expect(ask(here, ["shop"], { [option]: ["../x"] })).rejects.toThrow("../x is not the name of a Secret")
      await expect(ask(here, [], { all: true, [option]: ["a"] })).rejects.toThrow("leave out --all")
      await expect(ask(here, ["shop"], { revoke: true, [option]: ["a"] })).rejects.toThrow(`leave out ${flag}`)
    })
  })

describe("grant of routes", () => {
  const routes = { ...role, metadata: { name: "aim-target-routes" } }
  test("is part of a grant where the role is installed, and is revoked with it", async () => {
    const here = await world(routes)
    await ask(here, ["shop"])
    expect(Object.keys(await rights(here)).sort()).toEqual([
      "shop RoleBinding aim-target",
      "shop RoleBinding aim-target-routes",
    ])
    await ask(here, ["shop"], { revoke: true })
    expect(await rights(here)).toEqual({})
  })
})

describe("grant --all", () => {
  test("says what it means and wants --yes; leaves out the system's namespaces and Secrets", async () => {
    const here = await world()
    const there = ["default", "lab", "shop"]
    await expect(ask(here, [], { all: true })).rejects.toThrow(
      [
        `--all lets aim-system/aim-controller change the workloads of 3 namespaces: ${there.join(", ")}`,
        "It leaves out kube-* and aim-system, namespaces that are created later, and Secrets. To confirm, add --yes.",
      ].join("\n"),
    )
    expect(await rights(here)).toEqual({})
    await ask(here, [], { all: true, yes: true })
    expect(Object.keys(await rights(here)).sort()).toEqual(there.map(name => `${name} RoleBinding aim-target`))
  })
  test("--revoke takes back every grant, also one for the whole cluster, and nothing else", async () => {
    const here = await world(binding(undefined, ours), binding("kube-system", ours), binding("lab", theirs))
    await ask(here, ["shop"])
    expect((await ask(here, [], { all: true, revoke: true })).text).toBe(
      [
        "revoked: the grant in namespace kube-system",
        "revoked: the grant in namespace shop",
        "revoked: the grant in every namespace",
        "",
      ].join("\n"),
    )
    expect(Object.keys(await rights(here))).toEqual(["lab RoleBinding aim-target"])
  })
  test("prints a binding for each namespace", async () => {
    const { text } = await ask(await world(), [], { all: true, output: "yaml" })
    const all = parseAllDocuments(text).map(document => document.toJS().metadata)
    expect(all.map(({ namespace, name }) => `${namespace} ${name}`)).toEqual(
      ["default", "lab", "shop"].flatMap(place => [`${place} aim-target-routes`, `${place} aim-target`]),
    )
  })
})
