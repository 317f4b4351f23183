import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { expect, onTestFinished, test } from "vitest"
import { parse } from "yaml"
import { source, sourcesPath } from "#test/support/alternate-sources.ts"
import { authorsWorld, tryAsAuthors } from "#test/support/attempts.ts"
import { runProgram, startProgram } from "#test/support/program.ts"
import { type Place, refusalOf, refused, tenantsWorld, whatIsNotTheirs } from "#test/support/tenant.ts"
import { connectApi, type Json, until } from "#tools/kube/api.ts"
import { kubeconfig as kubeconfigOf } from "#tools/kube/components.ts"

/** What the suites of tenants hold a real cluster to, on `aim up`: the same attempts, and grants that count. */

async function temporaryFolder(): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), "aim-tenants-"))
  onTestFinished(() => rm(folder, { recursive: true, force: true }))
  return folder
}

/** A cluster with everything that an installation brings. */
async function installed(): Promise<Place & { folder: string; aim(...args: string[]): ReturnType<typeof runProgram> }> {
  const folder = await temporaryFolder()
  const [file, kubeconfig] = [join(folder, "manifests.yaml"), join(folder, "kubeconfig")]
  const { code, stdout, output } = await runProgram("bin/aim", ["manifests"])
  expect(code, output).toBe(0)
  await writeFile(file, stdout)
  const program = startProgram("bin/aim", ["up", "--load", file, "--write-kubeconfig", kubeconfig])
  const isUp = until("the cluster to be up", async () => program.output.includes("A cluster is up"))
  await Promise.race([isUp, program.ended.then(() => expect.fail(program.output))])
  const { clusters, users } = parse(await readFile(kubeconfig, "utf8"))
  const { server, "certificate-authority-data": authority } = clusters[0].cluster
  const access = {
    server,
    certificateAuthority: Buffer.from(authority, "base64").toString(),
    token: users[0].user.token,
  }
  const api = connectApi(access)
  onTestFinished(() => api.close())
  return { api, access, folder, aim: (...args) => runProgram("bin/aim", args, { KUBECONFIG: kubeconfig }) }
}

async function makeNamespaces({ api }: Place, ...names: string[]) {
  for (const name of names) {
    await api.create("/api/v1/namespaces", { metadata: { name } })
    await until("its account", () => api.find(`/api/v1/namespaces/${name}/serviceaccounts/default`))
  }
}

test("authors of requests and pull jobs are held to what they may do themselves", async () => {
  const place = await installed()
  await makeNamespaces(place, "mine", "theirs")
  await tryAsAuthors(await authorsWorld(place, "mine", "theirs"))
})

test("what is not the tenant's is refused, and nothing has changed", async () => {
  const place = await installed()
  await makeNamespaces(place, "mine", "theirs")
  const world = await tenantsWorld(place, "mine", "theirs")
  for (const namespace of ["mine", "theirs"]) await place.api.create(sourcesPath(namespace), source(namespace))
  const before = await whatIsNotTheirs(world)
  const tried = Object.entries(refused)
  expect(tried.length).toBeGreaterThan(30)
  for (const [name, [refusal, attempt]] of tried) {
    const answer = await attempt(world, { access: world.tenant })
    expect({ [name]: refusalOf(answer) }).toEqual({ [name]: refusal })
  }
  expect(await whatIsNotTheirs(world)).toEqual(before)
})

test("a grant gives the controllers' account its rights in one namespace, and only its owner may give it", async () => {
  const place = await installed()
  const { api, access, folder, aim } = place
  await makeNamespaces(place, "shop", "lab")
  const may = async (namespace: string) => {
    const resourceAttributes = { namespace, verb: "patch", group: "apps", resource: "deployments" }
    const spec = { user: "system:serviceaccount:aim-system:aim-controller", resourceAttributes }
    const { status } = await api.create("/apis/authorization.k8s.io/v1/subjectaccessreviews", { spec })
    return status.allowed
  }
  expect(await may("shop")).toBe(false)
  expect(await aim("grant", "shop")).toMatchObject({ code: 0, stdout: expect.stringContaining("granted: ") })
  expect([await may("shop"), await may("lab")]).toEqual([true, false])

  // A user of one namespace may bind roles there, and holds nothing that could be given on.
  const metadata = { name: "tenant" }
  const rules = [{ apiGroups: ["rbac.authorization.k8s.io"], resources: ["rolebindings"], verbs: ["create", "get"] }]
  const rbac = "/apis/rbac.authorization.k8s.io/v1/namespaces/lab"
  await api.create("/api/v1/namespaces/lab/serviceaccounts", { metadata })
  await api.create(`${rbac}/roles`, { metadata, rules })
  const subjects = [{ kind: "ServiceAccount", namespace: "lab", name: "tenant" }]
  const bind = (name: string, kind: string, role: string): Json => ({
    ...{ metadata: { name }, subjects },
    roleRef: { apiGroup: "rbac.authorization.k8s.io", kind, name: role },
  })
  await api.create(`${rbac}/rolebindings`, bind("tenant", "Role", "tenant"))
  const { status } = await api.create("/api/v1/namespaces/lab/serviceaccounts/tenant/token", { spec: {} })
  const own = join(folder, "tenant.kubeconfig")
  await writeFile(own, kubeconfigOf({ ...access, token: status.token }), { mode: 0o600 })
  const refused = await runProgram("bin/aim", ["grant", "lab"], { KUBECONFIG: own })
  expect(refused).toMatchObject({ code: 1, output: expect.stringContaining("you may not grant this in namespace lab") })
  expect(refused.output).toContain("is attempting to grant RBAC permissions not currently held")
  expect(await may("lab")).toBe(false)

  // Its administrator holds them.
  await api.create(`${rbac}/rolebindings`, bind("administrator", "ClusterRole", "cluster-admin"))
  expect(await runProgram("bin/aim", ["grant", "lab"], { KUBECONFIG: own })).toMatchObject({ code: 0 })
  expect(await may("lab")).toBe(true)
  expect(await aim("grant", "lab", "--revoke")).toMatchObject({ code: 0 })
  expect([await may("shop"), await may("lab")]).toEqual([true, false])
})
