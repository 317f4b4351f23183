import { createServer } from "node:http"
import type { AddressInfo } from "node:net"
import { afterAll, beforeAll, expect, onTestFinished, test } from "vitest"
import { parseAllDocuments, stringify } from "yaml"
import { namesOf } from "#api/names.ts"
import { ask } from "#test/support/ask.ts"
import { installKinds, isTrue } from "#test/support/fleet.ts"
import {
  floor,
  type Json,
  onRealNode,
  quickEnd,
  realNode,
  uniqueNamespace,
  until,
  untilAllowed,
} from "#test/support/floor.ts"
import { aim, applyManifests, buildImage, uninstall } from "#test/support/installation.ts"
import { checkMetricsText, preparePrometheus } from "#test/support/prometheus.ts"
import { nodeAnswer } from "#test/support/real-pulls.ts"
import { polite, shell, stateOf, tookMs } from "#test/support/real-restarts.ts"

// Manager and agents as `aim manifests all --cri-socket` prints them, on the real node, with their roles alone and every
// policy in force.

const account = "system:serviceaccount:aim-agents:aim-agent"
const { group, version } = namesOf("ContainerRecreateRequest")
const apiVersion = `${group}/${version}`
const pathOf = (namespace: string, plural: string, name = "") =>
  `/apis/${apiVersion}/namespaces/${namespace}/${plural}${name && `/${name}`}`

beforeAll(async () => {
  await installKinds()
  const socket = floor().containerdSocket
  const printed = await aim("manifests", "all", "--image", await buildImage(), "--cri-socket", socket)
  await applyManifests(withThresholdOfFloor(printed))
  const rolledOut = (workload: string, namespace: string) =>
    floor().kubectlRun("-n", namespace, "rollout", "status", workload, "--timeout=180s")
  await Promise.all([
    rolledOut("deployment/aim-controller", "aim-system"),
    rolledOut("daemonset/aim-agent", "aim-agents"),
  ])
})
afterAll(async () => {
  await uninstall()
  await floor().kubectlRun("delete", "nodeimages", "--all")
})

/** As the floor's kubelet has it: a developer's full disk is no matter here. The rest stays as it was printed. */
function withThresholdOfFloor(printed: string): string {
  const manifests: Json[] = parseAllDocuments(printed).map(document => document.toJS())
  const { spec } = manifests.find(({ kind }) => kind === "DaemonSet")!
  spec.template.spec.containers[0].args.push("--image-gc-high-threshold", "100")
  return manifests.map(manifest => stringify(manifest)).join("---\n")
}

/** The agent's pod on the real node. */
async function agentPod(): Promise<Json> {
  const { items } = await floor().api.get("/api/v1/namespaces/aim-agents/pods")
  return items.find(({ spec }: Json) => spec.nodeName === realNode)
}

async function startPod(namespace: string, containers: Json[] = [{ name: "app" }], spec: Json = {}): Promise<void> {
  const { reference } = await floor().pushImage("restarted:v1")
  const all = containers.map(container => ({ image: reference, ...container }))
  await floor().api.create(`/api/v1/namespaces/${namespace}/pods`, {
    metadata: { name: "web" },
    spec: { ...onRealNode, ...quickEnd, containers: all, ...spec },
  })
  const path = `/api/v1/namespaces/${namespace}/pods/web`
  await until("the pod is ready", async () => isTrue(await floor().api.get(path), "Ready"))
}

/** Restarts containers of the pod, and returns the request once it has succeeded. */
async function restart(namespace: string, name: string, containers = ["app"]): Promise<Json> {
  const { api } = floor()
  const spec = { podName: "web", containers: containers.map(each => ({ name: each })) }
  const requests = pathOf(namespace, "containerrecreaterequests")
  await api.create(requests, { apiVersion, kind: "ContainerRecreateRequest", metadata: { name }, spec })
  const done = await until(`${name} has ended`, async () => {
    const found = await api.get(`${requests}/${name}`)
    return found.status?.phase === "Completed" && found
  })
  expect(isTrue(done, "Ready"), JSON.stringify(done.status)).toBe(true)
  return done
}

async function restartCounts(namespace: string): Promise<number[]> {
  const { status } = await floor().api.get(`/api/v1/namespaces/${namespace}/pods/web`)
  return status.containerStatuses.map(({ restartCount }: Json) => restartCount)
}

async function pull(namespace: string, name: string): Promise<void> {
  const { api, pushImage } = floor()
  const { reference, digest } = await pushImage(`${namespace}/${name}:1`)
  const spec = { image: reference, selector: { names: [realNode] }, pullPolicy: { backoffLimit: 0 } }
  const jobs = pathOf(namespace, "imagepulljobs")
  await api.create(jobs, { apiVersion, kind: "ImagePullJob", metadata: { name }, spec })
  const { status } = await until(`${name} has ended`, async () => {
    const found = await api.get(`${jobs}/${name}`)
    return found.status?.completionTime && found
  })
  expect(status, JSON.stringify(status)).toMatchObject({ succeeded: 1, failed: 0 })
  expect((await nodeAnswer(reference))?.repoDigests).toEqual([expect.stringContaining(digest)])
}

test("it restarts a container and pulls an image, as a user without capabilities, with one file of the node", async () => {
  const namespace = await uniqueNamespace()
  await startPod(namespace)
  await restart(namespace, "once")
  expect(await restartCounts(namespace)).toEqual([1])
  await pull(namespace, "app")
  const { spec, status } = await agentPod()
  expect(status.containerStatuses[0].restartCount).toBe(0)
  expect(spec.securityContext).toMatchObject({ runAsUser: 65532, runAsGroup: 0, runAsNonRoot: true })
  const paths = spec.volumes.flatMap(({ hostPath }: Json) => hostPath ?? [])
  expect(paths).toEqual([{ path: floor().containerdSocket, type: "Socket" }])
})

test("its metrics count what it does, and Prometheus' linter accepts them", async () => {
  await preparePrometheus()
  const { metadata } = await agentPod()
  const path = `/api/v1/namespaces/aim-agents/pods/${metadata.name}:8080/proxy/metrics`
  const served = await floor().kubectlRun("get", "--raw", path)
  await checkMetricsText(served)
  const counted = (name: string, labels = "") =>
    Number(
      served
        .split("\n")
        .find(line => line.startsWith(`aim_${name}{`) && line.includes(labels) && line.includes(`node="${realNode}"`))
        ?.split(" ")[1],
    )
  expect(counted("agent_stops_total", 'result="Stopped"')).toBe(1)
  expect(counted("agent_pulls_total", 'result="Present"')).toBe(1)
  expect(counted("agent_pulled_bytes_total")).toBeGreaterThan(0)
  expect(counted("agent_pulls_in_progress")).toBe(0)
})

test("each kind of preStop runs before its container is stopped; httpGet goes to the pod's own address only", async () => {
  const namespace = await uniqueNamespace()
  const { port, asked } = await startServer()
  // Answers at /cgi-bin/bye, and leaves a file.
  const server = [
    "mkdir -p /tmp/www/cgi-bin",
    `printf '#!/bin/sh\\necho "$QUERY_STRING" >/data/http\\necho; echo\\n' >/tmp/www/cgi-bin/bye`,
    "chmod +x /tmp/www/cgi-bin/bye",
    "httpd -p 9000 -h /tmp/www",
  ].join("; ")
  const get = { path: "/cgi-bin/bye?left=http", port: "admin" }
  const hooks: Record<string, Json> = {
    exec: { exec: { command: shell("echo left=exec >/data/exec") } },
    http: { httpGet: get },
    sleep: { sleep: { seconds: 3 } },
    elsewhere: { httpGet: { host: "10.88.0.1", port, path: "/" } },
  }
  const containers = Object.entries(hooks).map(([name, preStop]) => ({
    name,
    command: shell(`cat /data/${name}; ${name === "http" ? server : "true"}; ${polite}`),
    ...(name === "http" && {
      ports: [{ name: "admin", containerPort: 9000 }],
      // Its server starts some time after its container.
      readinessProbe: { tcpSocket: { port: "admin" }, periodSeconds: 1 },
    }),
    volumeMounts: [{ name: "data", mountPath: "/data" }],
    lifecycle: { preStop },
  }))
  const volumes = [{ name: "data", emptyDir: {} }]
  const graceSeconds = 60
  await startPod(namespace, containers, { volumes, terminationGracePeriodSeconds: graceSeconds })
  const request = await restart(namespace, "hooks", Object.keys(hooks))
  expect(await restartCounts(namespace)).toEqual([1, 1, 1, 1])
  for (const name of ["exec", "http"])
    await until(`the log of ${name}`, async () =>
      (await floor().kubectlRun("logs", "-n", namespace, "web", "-c", name)).includes(`left=${name}`),
    )
  // As long as its preStop, and not until the kill at the end of the grace period.
  const slept = await tookMs(stateOf(request, "sleep"))
  expect(slept).toBeGreaterThan(2900)
  expect(slept).toBeLessThan((graceSeconds * 1000) / 2)
  expect(asked).toEqual([])
})

/** A server of the machine that pods reach, and what it was asked. */
async function startServer(): Promise<{ port: number; asked: string[] }> {
  const asked: string[] = []
  const server = createServer(({ url = "" }, response) => {
    asked.push(url)
    response.end()
  })
  await new Promise<void>(resolve => server.listen(0, "127.0.0.1", resolve))
  onTestFinished(() => void server.close())
  const { port } = server.address() as AddressInfo
  await floor().expose(port)
  return { port, asked }
}

test("a list with pull secrets: aim makes its jobs, which the policy would refuse to an author without these rights", async () => {
  const namespace = await uniqueNamespace()
  const { api, pushImage, registry } = floor()
  const { reference } = await pushImage(`${namespace}/listed:1`)
  const auths = { [registry]: { username: "anyone", password: "anything" } }
  await api.create(`/api/v1/namespaces/${namespace}/secrets`, {
    metadata: { name: "pull" },
    type: "kubernetes.io/dockerconfigjson",
    stringData: { ".dockerconfigjson": JSON.stringify({ auths }) },
  })
  await aim("grant", namespace, "--pull-secrets", "pull")
  const manager = { namespace: "aim-system", name: "aim-controller" }
  await untilAllowed(manager, { verb: "get", resource: "secrets", name: "pull", namespace })
  const spec = { images: [reference], selector: { names: [realNode] }, pullSecrets: ["pull"] }
  const lists = pathOf(namespace, "imagelistpulljobs")
  await api.create(lists, { apiVersion, kind: "ImageListPullJob", metadata: { name: "list" }, spec })
  const { status } = await until("the list has ended", async () => {
    const found = await api.get(`${lists}/list`)
    return found.status?.completionTime && found
  })
  expect(status, JSON.stringify(status)).toMatchObject({ desired: 1, succeeded: 1 })
  expect(await nodeAnswer(reference)).toBeDefined()
})

test("its account may read and report on two kinds, and nothing else", async () => {
  const headers = { "impersonate-user": account, "impersonate-group": "system:serviceaccounts" }
  const review = {
    apiVersion: "authorization.k8s.io/v1",
    kind: "SelfSubjectRulesReview",
    spec: { namespace: "default" },
  }
  const { body } = await ask("POST", "/apis/authorization.k8s.io/v1/selfsubjectrulesreviews", review, { headers })
  const rules: Json[] = body.status.resourceRules
  const may = rules.flatMap(({ verbs, apiGroups, resources }) =>
    verbs.flatMap((verb: string) => resources.map((resource: string) => `${verb} ${resource}.${apiGroups}`)),
  )
  expect(may.filter(right => !/^create selfsubject/.test(right)).sort()).toEqual(
    ["containerrecreaterequests", "nodeimages"]
      .flatMap(plural => [`list ${plural}.${group}`, `update ${plural}/status.${group}`, `watch ${plural}.${group}`])
      .sort(),
  )
  const refused: [string, string][] = [
    ["get", "secrets"],
    ["list", "pods"],
    ["create", "pods/exec"],
    ["get", "nodes"],
    ["create", "events"],
    ["update", `nodeimages.${group}`],
    ["create", `containerrecreaterequests.${group}`],
    ["list", `imagepulljobs.${group}`],
    ["create", "serviceaccounts/token"],
    ["impersonate", "users"],
  ]
  for (const [verb, resource] of refused) {
    const answer = await floor()
      .kubectlRun("auth", "can-i", verb, resource, "-A", `--as=${account}`)
      .catch(() => "no")
    expect(answer.trim(), `${verb} ${resource}`).toBe("no")
  }
})

test("containerd is killed: the agent ends, and the kubelet starts it with the new socket", async () => {
  const namespace = await uniqueNamespace()
  await startPod(namespace)
  const before = await agentPod()
  await floor().stopProgram("containerd", "SIGKILL")
  await floor().startProgram("containerd")
  await restart(namespace, "after")
  expect(await restartCounts(namespace)).toEqual([1])
  const after = await until("the kubelet reports the agent's restart", async () => {
    const pod = await agentPod()
    return pod.status.containerStatuses[0].restartCount > 0 && pod
  })
  expect(after.metadata.uid).toBe(before.metadata.uid)
  const [{ restartCount, lastState }] = after.status.containerStatuses
  expect(restartCount).toBe(1)
  // It ended by itself with 1. Of a container that ends while containerd is dead, containerd 2 only knows that: 255.
  expect(lastState.terminated.exitCode).toBeOneOf([1, 255])
  await pull(namespace, "later")
})
