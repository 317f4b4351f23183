import { describe, expect, test } from "vitest"
import { parseAllDocuments } from "yaml"
import { KubeError } from "#runtime/client/errors.ts"
import { testCluster, testWorld } from "../test-world.ts"
import { run } from "./grant.ts"

const role = {
  metadata: { name: "aim-target" },
  rules: [{ apiGroups: ["apps"], resources: ["deployments"], verbs: ["patch"] }],
}
const ask = async (cluster: ReturnType<typeof testCluster>, words: string[], options: Record<string, unknown> = {}) => {
  const { world, said } = testWorld(cluster)
  const answer = await run({ arguments: words, options: { controllerNamespace: "aim-system", ...options } }, world)
  return { ...answer, said }
}

describe("grant", () => {
  test("binds the role in the namespace, says what it allows, and is content the second time", async () => {
    const cluster = testCluster(role)
    const first = await ask(cluster, ["shop"])
    expect(first.text).toBe("granted: aim-system/aim-controller may change workloads in namespace shop\n")
    expect(first.said).toEqual(["aim-target allows: patch deployments.apps"])
    expect(cluster.objects.get("shop/aim-target")).toMatchObject({
      kind: "RoleBinding",
      roleRef: { kind: "ClusterRole", name: "aim-target" },
      subjects: [{ kind: "ServiceAccount", name: "aim-controller", namespace: "aim-system" }],
    })
    expect((await ask(cluster, ["shop"])).text).toMatch(/^already granted/)
  })
  test("adds the account to a binding that is there for another, and keeps the other", async () => {
    const cluster = testCluster(role)
    await ask(cluster, ["shop"], { controllerNamespace: "elsewhere" })
    await ask(cluster, ["shop"])
    const { subjects } = cluster.objects.get("shop/aim-target") as unknown as { subjects: { namespace: string }[] }
    expect(subjects.map(({ namespace }) => namespace)).toEqual(["elsewhere", "aim-system"])
  })
  test("does not touch another binding of the same name", async () => {
    const mine = {
      metadata: { name: "aim-target", namespace: "shop" },
      roleRef: { kind: "Role", name: "mine" },
      subjects: [],
    }
    await expect(ask(testCluster(role, mine), ["shop"])).rejects.toThrow("for Role mine: delete it first")
  })
  test("--revoke takes it back, once", async () => {
    const cluster = testCluster(role)
    await ask(cluster, ["shop"])
    expect((await ask(cluster, ["shop"], { revoke: true })).text).toBe("revoked: the grant in namespace shop\n")
    expect((await ask(cluster, ["shop"], { revoke: true })).text).toBe("nothing to revoke in namespace shop\n")
  })
  test("--dry-run and -o print it and touch nothing", async () => {
    const cluster = testCluster()
    const { text } = await ask(cluster, ["a", "b"], { dryRun: true })
    expect(parseAllDocuments(text).map(document => document.toJS().metadata.namespace)).toEqual(["a", "b"])
    const all = JSON.parse((await ask(cluster, [], { all: true, output: "json" })).text)
    expect(all).toMatchObject({ kind: "ClusterRoleBinding", metadata: { name: "aim-target" } })
    expect(cluster.calls).toEqual([])
  })
  test("says who may, to whom may not", async () => {
    const cluster = testCluster(role)
    cluster.fail("create", new KubeError("Forbidden", "attempting to grant extra privileges", { status: 403 }))
    await expect(ask(cluster, ["shop"])).rejects.toThrow("holds all that aim-target allows there may do it")
    await expect(ask(cluster, [], { all: true })).rejects.toThrow("A cluster administrator may do it")
  })
  test("wants one namespace or all, by its name", async () => {
    await expect(ask(testCluster(), [])).rejects.toThrow("grant needs a NAMESPACE, or --all")
    await expect(ask(testCluster(), ["shop"], { all: true })).rejects.toThrow("write one or the other")
    await expect(ask(testCluster(), ["Shop"])).rejects.toThrow("Shop is not a namespace")
  })
})
