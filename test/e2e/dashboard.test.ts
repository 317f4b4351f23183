import { createServer, request } from "node:http"
import type { AddressInfo } from "node:net"
import { beforeAll, expect, onTestFinished, test } from "vitest"
import { source, sourcesPath } from "#test/support/alternate-sources.ts"
import { ask, browse, post } from "#test/support/dashboard.ts"
import { createServiceImage, installKinds, serviceImagePath } from "#test/support/fleet.ts"
import { floor, uniqueNamespace, until } from "#test/support/floor.ts"
import { aim, applyManifests, buildImage, uninstall } from "#test/support/installation.ts"
import { startProgram } from "#test/support/program.ts"

// The dashboard as a workload of a real cluster, at a sub-path, behind a proxy that sends the token of its user.

beforeAll(installKinds)

/** A proxy that has signed a user in, by the token that the test sets. */
async function tokenProxy() {
  const signedIn = { token: "", port: 0 }
  const server = createServer((incoming, answer) => {
    const { url: path, method, headers } = incoming
    const passed = request(
      { host: "127.0.0.1", port: signedIn.port, path, method, headers: { ...headers, authorization: bearer() } },
      response => {
        answer.writeHead(response.statusCode!, response.headers)
        response.pipe(answer)
        answer.on("close", () => response.destroy())
      },
    )
    passed.on("error", () => answer.destroy())
    incoming.pipe(passed)
  })
  const bearer = () => `Bearer ${signedIn.token}`
  await new Promise<void>(resolve => server.listen(0, "127.0.0.1", resolve))
  onTestFinished(() => {
    server.closeAllConnections()
    server.close()
  })
  const { port } = server.address() as AddressInfo
  return { signedIn, host: `127.0.0.1:${port}`, url: `http://127.0.0.1:${port}/aim/` }
}

/** An account and its token. */
async function account(namespace: string, name: string, rules: object[]): Promise<string> {
  const { api, kubectlRun } = floor()
  await api.create(`/api/v1/namespaces/${namespace}/serviceaccounts`, { metadata: { name } })
  const rbac = `/apis/rbac.authorization.k8s.io/v1`
  const metadata = { name: `${namespace}-${name}` }
  await api.create(`${rbac}/clusterroles`, { metadata, rules })
  await api.create(`${rbac}/clusterrolebindings`, {
    metadata,
    roleRef: { apiGroup: "rbac.authorization.k8s.io", kind: "ClusterRole", name: metadata.name },
    subjects: [{ kind: "ServiceAccount", name, namespace }],
  })
  onTestFinished(async () => {
    for (const plural of ["clusterroles", "clusterrolebindings"]) await api.remove(`${rbac}/${plural}/${metadata.name}`)
  })
  return (await kubectlRun("-n", namespace, "create", "token", name)).trim()
}

async function forwarded(): Promise<number> {
  const { kubectl, kubeconfig } = floor()
  const args = ["port-forward", "--kubeconfig", kubeconfig, "-n", "aim-system", "deployment/aim-dashboard", ":8080"]
  const forward = startProgram(kubectl, args)
  const said = () => /Forwarding from 127\.0\.0\.1:(\d+)/.exec(forward.output)?.[1]
  return Number(await until("the port to be forwarded", async () => said()))
}

test("inside the cluster each viewer sees and changes what its own token may, and the server may nothing", async () => {
  const { api, kubectlRun } = floor()
  const namespace = await uniqueNamespace()
  const proxy = await tokenProxy()
  const image = await buildImage()
  const flags = ["--host", proxy.host, "--base-path", "/aim", "--operate", "--image", image]
  await applyManifests(await aim("manifests", "dashboard", ...flags))
  onTestFinished(uninstall)
  await kubectlRun("-n", "aim-system", "rollout", "status", "deployment/aim-dashboard", "--timeout=180s")
  proxy.signedIn.port = await forwarded()

  await api.create(sourcesPath(namespace), source(namespace))
  await createServiceImage(namespace, { defaultImage: "registry.example.com/dicom:1" })
  const ours = (verbs: string[]) => [{ apiGroups: ["autoimagemanager.io"], resources: ["*"], verbs }]
  const operator = await account(namespace, "operator", ours(["get", "list", "watch", "patch"]))
  const stranger = await account(namespace, "stranger", [])
  const { name } = (await api.get(sourcesPath(namespace))).items[0].metadata
  const signIn = async (token: string) => {
    proxy.signedIn.token = token
    const { status, body } = await post(proxy, "/aim/api/session", {})
    expect(status, JSON.stringify(body)).toBe(200)
    return body
  }

  const session = await signIn(operator)
  expect(session.user).toBe(`system:serviceaccount:${namespace}:operator`)
  const mine = await browse(proxy, session.session, [{ page: "overview" }])
  await until("the source", async () => mine.row("alternateimagesources", `${namespace}/${name}`))
  const action = { kind: "serviceimages", namespace: "", name: namespace, action: "pause" }
  const shown = await post(proxy, "/aim/api/preview", action, session.session)
  expect(shown.body).toMatchObject({ isPossible: true })
  const act = { ...action, decision: shown.body.decision }
  expect((await post(proxy, "/aim/api/act", act, session.session)).body).toMatchObject({ isDone: true })
  const { metadata, spec } = await api.get(serviceImagePath(namespace))
  expect(spec.paused).toBe(true)
  expect(metadata.managedFields.map(({ manager }: { manager: string }) => manager)).toContain("aim-dashboard")
  mine.close()

  const other = await signIn(stranger)
  const theirs = await browse(proxy, other.session, [{ page: "overview" }])
  await until("nothing", async () => theirs.feed("list/alternateimagesources")?.head.scope === "None")
  expect(JSON.stringify(theirs.frames)).not.toContain(`${namespace}/${name}`)
  const refused = await post(proxy, "/aim/api/preview", { ...action, action: "resume" }, other.session)
  expect(refused.body.isPossible ?? false).toBe(false)
  // A session that was found elsewhere is of no use with another token.
  expect((await post(proxy, "/aim/api/preview", action, session.session)).status).toBe(401)
  proxy.signedIn.token = "made-up"
  expect((await post(proxy, "/aim/api/session", {})).status).toBe(401)

  expect((await ask(proxy, "/aim/")).body).toContain("<!doctype html>")
  expect((await ask(proxy, "/")).status).toBe(404)
  expect((await ask(proxy, "/aim/", { headers: { host: "evil.example.com" } })).status).toBe(421)
  const own = "--as=system:serviceaccount:aim-system:aim-dashboard"
  const may = async (verb: string, resource: string) =>
    (await kubectlRun("auth", "can-i", verb, resource, "-A", own).catch(() => "no")).trim()
  for (const [verb, resource] of [
    ["list", "serviceimages.autoimagemanager.io"],
    ["get", "pods"],
    ["impersonate", "users"],
  ] as const)
    expect(await may(verb, resource), `${verb} ${resource}`).toBe("no")
  const pods = "/api/v1/namespaces/aim-system/pods?labelSelector=app.kubernetes.io/name%3Daim-dashboard"
  const [pod] = (await api.get(pods)).items
  expect(pod.spec.volumes.map((volume: { name: string }) => volume.name)).toEqual(["authority"])
  const log = await kubectlRun("-n", "aim-system", "logs", "deployment/aim-dashboard")
  for (const token of [operator, stranger]) expect(log).not.toContain(token)
})
