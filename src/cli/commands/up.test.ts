import { mkdtemp, readdir, readFile, rm, writeFile } from "node:fs/promises"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { expect, onTestFinished, test } from "vitest"
import { ContainerRecreateRequest } from "#api/v1alpha1/containerrecreaterequest/index.ts"
import { accessIn } from "#test/support/kubeconfig.ts"
import { type Program, runProgram, startProgram } from "#test/support/program.ts"
import { type Access, connectApi, type Json, until } from "#tools/kube/api.ts"

async function temporaryFolder(): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), "aim-up-"))
  onTestFinished(() => rm(folder, { recursive: true, force: true }))
  return folder
}

type Up = { program: Program; kubeconfig: string; access: Access; get(path: string): Promise<Json> }

/** Starts `aim up` and waits until it says that it is up. */
async function up(...args: string[]): Promise<Up> {
  const program = startProgram("bin/aim", ["up", ...args])
  const said = until("the kubeconfig", async () => /export KUBECONFIG=(\S+)/.exec(program.output)?.[1])
  const kubeconfig = await Promise.race([said, program.ended.then(() => expect.fail(program.output))])
  const access = accessIn(await readFile(kubeconfig, "utf8"))
  return { program, kubeconfig, access, get: path => connectApi(access).get(path) }
}

/** The end of patience with a program that should end by itself: one that spins hears no other signal. */
const sleepUntilKilled = async (program: Program) => {
  await new Promise(resolve => setTimeout(resolve, 30_000).unref())
  program.kill("SIGKILL")
  return "did not end"
}

const shop = `
apiVersion: v1
kind: Namespace
metadata: {name: shop}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, namespace: shop}
spec:
  replicas: 2
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec: {containers: [{name: web, image: "shop/web:1"}]}
`
const isRolledOut = ({ status }: Json) => status?.availableReplicas === 2

test("a cluster comes up with nodes and manifests, writes a kubeconfig, and is there again with its data", async () => {
  const folder = await temporaryFolder()
  const [file, kubeconfig, data] = [join(folder, "shop.yaml"), join(folder, "kubeconfig"), join(folder, "data")]
  await writeFile(file, shop)
  const options = ["--data", data, "--write-kubeconfig", kubeconfig, "--speed", "20"]
  const path = "/apis/apps/v1/namespaces/shop/deployments/web"

  const first = await up("--nodes", "2", "--load", file, ...options)
  expect((await first.get("/api/v1/nodes")).items).toHaveLength(2)
  const before = await until("the pods to run", async () => {
    const deployment = await first.get(path)
    return isRolledOut(deployment) && deployment
  })
  expect(await readFile(kubeconfig, "utf8")).toMatch(/"server": "https:..127.0.0.1:\d+"/)
  const crd = await first.get("/apis/autoimagemanager.io/v1alpha1/serviceimages")
  expect(crd.kind).toBe("ServiceImageList")
  first.program.kill("SIGINT")
  expect(await first.program.ended).toBe(0)

  const second = await up("--nodes", "2", ...options)
  expect(second.program.output).toContain("is back")
  const after = await second.get(path)
  expect(after.metadata.uid).toBe(before.metadata.uid)
  expect(isRolledOut(after)).toBe(true)
  expect((await second.get("/api/v1/nodes")).items).toHaveLength(2)
})

test("with a gateway it serves the Gateway API, and a class is accepted", async () => {
  const { access } = await up("--gateway", "--speed", "20")
  const api = connectApi(access)
  const classes = "/apis/gateway.networking.k8s.io/v1/gatewayclasses"
  await api.create(classes, {
    apiVersion: "gateway.networking.k8s.io/v1",
    kind: "GatewayClass",
    metadata: { name: "contour" },
    spec: { controllerName: "projectcontour.io/gateway-controller" },
  })
  await until("the class to be accepted", async () => {
    const { status } = await api.get(`${classes}/contour`)
    return status?.conditions?.some(({ type, status }: Json) => type === "Accepted" && status === "True")
  })
})

test("its kubeconfig is an administrator's, other users have what roles give them, and strangers nothing", async () => {
  const { access, kubeconfig } = await up()
  const api = connectApi(access)
  await api.create("/api/v1/namespaces/default/serviceaccounts", { metadata: { name: "reader" } })
  const subjects = [{ kind: "ServiceAccount", namespace: "default", name: "reader" }]
  const roleRef = { apiGroup: "rbac.authorization.k8s.io", kind: "ClusterRole", name: "view" }
  const bindings = "/apis/rbac.authorization.k8s.io/v1/namespaces/default/rolebindings"
  await api.create(bindings, { metadata: { name: "reader" }, roleRef, subjects })
  const { status } = await api.create("/api/v1/namespaces/default/serviceaccounts/reader/token", { spec: {} })
  const reader = connectApi({ ...access, token: status.token })
  const pods = (namespace: string) => `/api/v1/namespaces/${namespace}/pods`
  await until("the role to be filled", () =>
    reader.get(pods("default")).then(
      () => true,
      () => false,
    ),
  )
  expect((await reader.get(pods("default"))).items).toEqual([])
  const account = "system:serviceaccount:default:reader"
  await expect(reader.get(pods("kube-system"))).rejects.toThrow(
    `User "${account}" cannot list resource "pods" in API group "" in the namespace "kube-system"`,
  )
  await expect(reader.create(pods("default"), { metadata: { name: "a" } })).rejects.toThrow("cannot create")
  await expect(connectApi({ ...access, token: "other" }).get(pods("default"))).rejects.toThrow("Unauthorized")
  await expect(connectApi({ ...access, token: "" }).get(pods("default"))).rejects.toThrow('User "system:anonymous"')
  const granted = await runProgram("bin/aim", ["get", "si"], { KUBECONFIG: kubeconfig })
  expect(granted).toMatchObject({ code: 0 })
})

test("users with certificates are contexts of the kubeconfig, with the groups that are named", async () => {
  const { access, kubeconfig } = await up("--user", "anna", "--user", "bert=dev,system:masters")
  const aim = (context: string) =>
    runProgram("bin/aim", ["get", "si", "--context", context], { KUBECONFIG: kubeconfig })
  expect(await aim("bert")).toMatchObject({ code: 0 })
  expect(await aim("anna")).toMatchObject({ code: 1, output: expect.stringContaining('User "anna" cannot list') })
  const subjects = [{ apiGroup: "rbac.authorization.k8s.io", kind: "User", name: "anna" }]
  const roleRef = { apiGroup: "rbac.authorization.k8s.io", kind: "ClusterRole", name: "cluster-admin" }
  const bindings = "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings"
  await connectApi(access).create(bindings, { metadata: { name: "anna" }, roleRef, subjects })
  expect(await aim("anna")).toMatchObject({ code: 0 })
  const wrong = await runProgram("bin/aim", ["up", "--user", "a b"])
  expect(wrong).toMatchObject({ code: 2, output: expect.stringContaining("--user: a b is not a user's name") })
})

test("without TLS a request without credentials is the administrator's", async () => {
  const program = startProgram("bin/aim", ["up", "--no-tls"])
  const url = await until("the address", async () => /at (http:\S+)/.exec(program.output)?.[1])
  const ask = (headers: Record<string, string>) => fetch(`${url}/api/v1/nodes`, { headers })
  expect((await ask({})).status).toBe(200)
  expect((await ask({ "impersonate-user": "anna" })).status).toBe(403)
})

test("a registries file makes pulls fail as it says", async () => {
  const folder = await temporaryFolder()
  const [file, registries] = [join(folder, "shop.yaml"), join(folder, "registries.yaml")]
  await writeFile(file, shop.replace("shop/web:1", "registry.example.com/web:1"))
  await writeFile(registries, "registries:\n  registry.example.com: {fault: refused}\n")
  const { get } = await up("--load", file, "--registries", registries, "--speed", "20")
  const reason = await until("the pull to fail", async () => {
    const { items } = await get("/api/v1/namespaces/shop/pods")
    return items[0]?.status?.containerStatuses?.[0]?.state?.waiting?.reason?.match(/ErrImagePull|ImagePullBackOff/)?.[0]
  })
  expect(reason).toBeDefined()
})

test("what cannot be read is named, and what is no number too", async () => {
  const folder = await temporaryFolder()
  const broken = join(folder, "broken.yaml")
  await writeFile(broken, "a: [1\n")
  const nothing = await runProgram("bin/aim", ["up", "--load", join(folder, "none.yaml")])
  expect(nothing).toMatchObject({ code: 1, output: expect.stringContaining("none.yaml: no such file") })
  const yaml = await runProgram("bin/aim", ["up", "--load", broken])
  expect(yaml).toMatchObject({ code: 1, output: expect.stringContaining("broken.yaml:") })
  await writeFile(broken, "registries: {ghcr.io: {fault: moody}}\n")
  const moody = await runProgram("bin/aim", ["up", "--registries", broken])
  expect(moody).toMatchObject({ code: 1, output: expect.stringContaining("is one of refused") })
  const number = await runProgram("bin/aim", ["up", "--nodes", "many"])
  expect(number).toMatchObject({ code: 2, output: expect.stringContaining("--nodes: many is not a number") })
})

test("a folder for --data that cannot be written is refused before the cluster is called up", async () => {
  const folder = await temporaryFolder()
  const file = join(folder, "file")
  await writeFile(file, "")
  // Below procfs no folder can be made, and the system says that the one above is missing.
  for (const data of ["/proc/aim/data", join(file, "data"), file]) {
    const program = startProgram("bin/aim", ["up", "--data", data])
    const code = await Promise.race([program.ended, sleepUntilKilled(program)])
    expect({ data, code, output: program.output }).toEqual({
      data,
      code: 1,
      output: expect.stringMatching(new RegExp(`^aim: --data ${data}: the cluster cannot be kept there: `)),
    })
    expect(program.output).not.toContain("is up")
  }
})

test("a folder for --data is made with those above it", async () => {
  const data = join(await temporaryFolder(), "a", "b", "c")
  await up("--data", data)
  // Saved before it is called up, so there is nothing to wait for.
  expect(await readdir(data)).toEqual(["cluster.json"])
})

test("a cluster.json that is something else is refused and left as it is", async () => {
  const data = await temporaryFolder()
  const file = join(data, "cluster.json")
  const others = ['{"a":1}', "[]", "null", "no JSON", '{"revision":"7","objects":[]}', '{"revision":7,"objects":[{}]}']
  for (const text of others) {
    await writeFile(file, text)
    const { code, output } = await runProgram("bin/aim", ["up", "--data", data])
    expect({ text, code, output }).toMatchObject({
      code: 1,
      output: expect.stringContaining("is not a saved cluster of aim"),
    })
    expect(await readFile(file, "utf8")).toBe(text)
  }
})

test("a kubeconfig that cannot be written is named", async () => {
  const { code, output } = await runProgram("bin/aim", ["up", "--write-kubeconfig", "/nope/x"])
  expect(code).toBe(1)
  expect(output).toMatch(/^aim: --write-kubeconfig \/nope\/x: ENOENT/)
})

test("a folder that is lost meanwhile is reported, and the end says that the last changes are lost", async () => {
  const data = join(await temporaryFolder(), "data")
  const { program } = await up("--data", data)
  await rm(data, { recursive: true })
  await writeFile(data, "")
  await until("it is reported", async () => program.output.includes("retrying every 5 s"))
  program.kill("SIGTERM")
  expect(await program.ended).toBe(1)
  expect(program.output).toContain("The last changes are lost.")
})

test("an agent runs on every node: a request restarts a container of a pod", async () => {
  const { access, get, program } = await up("--nodes", "1", "--speed", "20")
  const api = connectApi(access)
  const pods = "/api/v1/namespaces/default/pods"
  const start = async (name: string, nodeName: string) => {
    await api.create(pods, {
      metadata: { name },
      spec: { nodeName, containers: [{ name: "app", image: "shop/web:1" }] },
    })
    return until(`${name} to run`, async () => {
      const { status } = await get(`${pods}/${name}`)
      return status.containerStatuses?.[0]?.state?.running && status.containerStatuses[0]
    })
  }
  const restart = async (podName: string) => {
    const requests = "/apis/autoimagemanager.io/v1alpha1/namespaces/default/containerrecreaterequests"
    const { apiVersion, kind } = ContainerRecreateRequest
    const spec = { podName, containers: [{ name: "app" }] }
    await api.create(requests, { apiVersion, kind, metadata: { name: podName }, spec })
    return until("the request to be complete", async () => {
      const { status } = await get(`${requests}/${podName}`)
      return status?.phase === "Completed" && status
    })
  }

  const before = await start("web", "node-0")
  expect(await restart("web")).toMatchObject({ containerRecreateStates: [{ name: "app", phase: "Succeeded" }] })
  const [after] = (await get(`${pods}/web`)).status.containerStatuses
  expect(after).toMatchObject({ restartCount: 1, lastState: { terminated: { containerID: before.containerID } } })

  // So it is on a node that comes later.
  await api.create("/api/v1/nodes", { metadata: { name: "late" } })
  await start("there", "late")
  expect(await restart("there")).toMatchObject({ containerRecreateStates: [{ name: "app", phase: "Succeeded" }] })
  program.kill("SIGINT")
  expect(await program.ended).toBe(0)
})
