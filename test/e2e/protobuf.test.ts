import { readFile } from "node:fs/promises"
import { isDeepStrictEqual } from "node:util"
import { expect, onTestFinished, test } from "vitest"
import { connect, createClient } from "#runtime/client/index.ts"
import { systemClock } from "#runtime/clock.ts"
import { systemRandom } from "#runtime/random.ts"
import { core, type KubeObject } from "#runtime/resource.ts"
import {
  floor,
  type Json,
  kubeconfigFor,
  onRealNode,
  quickEnd,
  serviceAccountAccess,
  uniqueNamespace,
  until,
} from "#test/support/floor.ts"
import { protobufFiles } from "../../tools/generate/kube-protobuf.ts"

test("the table of fields is that of Kubernetes", async () => {
  for (const { path, content } of await protobufFiles())
    expect(await readFile(path, "utf8"), "run node tools/generate/kube-protobuf.ts").toBe(content)
})

const probe = { httpGet: { path: "/", port: "web", httpHeaders: [{ name: "a", value: "" }] }, initialDelaySeconds: 0 }

/** Fields of every type that protobuf and JSON write differently: times, quantities, numbers or texts, inlined structs. */
const full: Json = {
  automountServiceAccountToken: false,
  terminationGracePeriodSeconds: 30,
  activeDeadlineSeconds: 2_000_000_000,
  priority: 0,
  nodeSelector: { "no-such": "node" },
  securityContext: { fsGroup: 65532, runAsUser: 0, sysctls: [], seccompProfile: { type: "RuntimeDefault" } },
  readinessGates: [{ conditionType: "example.com/ready" }],
  tolerations: [{ operator: "Exists", tolerationSeconds: 0, effect: "NoExecute" }],
  topologySpreadConstraints: [
    {
      maxSkew: 1,
      topologyKey: "zone",
      whenUnsatisfiable: "ScheduleAnyway",
      labelSelector: { matchLabels: { a: "b" } },
    },
  ],
  affinity: {
    nodeAffinity: {
      preferredDuringSchedulingIgnoredDuringExecution: [
        { weight: 1, preference: { matchExpressions: [{ key: "a", operator: "In", values: ["b"] }] } },
      ],
    },
  },
  initContainers: [
    { name: "setup", image: "example.com/setup:1" },
    { name: "proxy", image: "example.com/proxy:1", restartPolicy: "Always" },
  ],
  containers: [
    {
      name: "app",
      image: "example.com/app:1",
      args: [""],
      env: [
        { name: "EMPTY", value: "" },
        { name: "NODE", valueFrom: { fieldRef: { fieldPath: "spec.nodeName" } } },
        { name: "CPU", valueFrom: { resourceFieldRef: { resource: "limits.cpu", divisor: "1m" } } },
        { name: "KEY", valueFrom: { secretKeyRef: { name: "s", key: "k", optional: false } } },
      ],
      envFrom: [{ configMapRef: { name: "m" }, prefix: "X_" }],
      ports: [{ name: "web", containerPort: 80 }],
      resources: { limits: { cpu: "0.1", memory: "64Mi" }, requests: { cpu: "50m" } },
      livenessProbe: probe,
      startupProbe: { exec: { command: ["true"] }, terminationGracePeriodSeconds: 1 },
      readinessProbe: { tcpSocket: { port: 80 } },
      lifecycle: { preStop: { sleep: { seconds: 1 } } },
      securityContext: { allowPrivilegeEscalation: false, capabilities: { drop: ["ALL"] } },
      volumeMounts: [{ name: "all", mountPath: "/all", readOnly: true }],
    },
  ],
  volumes: [
    { name: "empty", emptyDir: { sizeLimit: "1Gi" } },
    {
      name: "all",
      projected: {
        defaultMode: 0,
        sources: [
          { serviceAccountToken: { path: "token", expirationSeconds: 3607 } },
          { configMap: { name: "m", items: [{ key: "a", path: "b", mode: 292 }] } },
          { downwardAPI: { items: [{ path: "labels", fieldRef: { fieldPath: "metadata.labels" } }] } },
        ],
      },
    },
    { name: "claim", ephemeral: { volumeClaimTemplate: { spec: claim() } } },
  ],
}

function claim(): Json {
  return { accessModes: ["ReadWriteOnce"], resources: { requests: { storage: "1Gi" } } }
}

const clientOf = async (kubeconfig: string) =>
  createClient({ ...(await connect({ kubeconfig })), clock: systemClock, random: systemRandom })

test("a refused watch of pods, which is answered in protobuf, has the server's words", async () => {
  const namespace = await uniqueNamespace()
  const client = await clientOf(kubeconfigFor(await serviceAccountAccess(namespace, "outsider", [])))
  const events = client.watch(core("pods", "Pod"), { namespace }, new AbortController().signal)
  await expect(Array.fromAsync(events)).rejects.toMatchObject({
    kind: "Forbidden",
    reason: "Forbidden",
    message: expect.stringContaining("pods is forbidden: User"),
  })
})

test("a pod in a watch, which comes as protobuf, is the pod that is read as JSON", async () => {
  const namespace = await uniqueNamespace()
  const { api } = floor()
  const path = `/api/v1/namespaces/${namespace}/pods`
  const metadata = { labels: { app: "full", empty: "" }, annotations: { text: "äöü \u2028 𝄞" } }
  await api.create(path, { metadata: { name: "full", finalizers: ["example.com/stay"], ...metadata }, spec: full })
  onTestFinished(() => api.patch(`${path}/full`, { metadata: { finalizers: null } }))
  const { reference } = await floor().pushImage("protobuf:1")
  const containers = [{ name: "app", image: reference, ports: [{ containerPort: 80 }] }]
  await api.create(path, { metadata: { name: "runs" }, spec: { ...onRealNode, ...quickEnd, containers } })
  await until("the pod runs", async () => (await api.get(`${path}/runs`)).status.phase === "Running")
  await api.remove(`${path}/full`)

  const client = await clientOf(floor().kubeconfig)
  const watched = async () => {
    const stop = new AbortController()
    const found: KubeObject[] = []
    for await (const event of client.watch(core("pods", "Pod"), { namespace, sendInitialEvents: true }, stop.signal)) {
      if (event.type === "BOOKMARK") stop.abort()
      else found.push(event.object as KubeObject)
    }
    return found
  }
  const versionsOf = (pods: readonly Json[]) => pods.map(({ metadata }) => metadata.resourceVersion).sort()
  // Kubelet and scheduler may write between the two.
  const { found, asJson } = await until("the same versions in both", async () => {
    const found = await watched()
    const asJson = (await api.get(path)).items as Json[]
    return isDeepStrictEqual(versionsOf(found), versionsOf(asJson)) && { found, asJson }
  })
  const without = ({ metadata: { managedFields: _, ...kept }, ...pod }: Json) => ({ ...pod, metadata: kept })
  expect(found.map(({ metadata }) => metadata.name).sort()).toEqual(["full", "runs"])
  for (const pod of found) {
    expect("managedFields" in pod.metadata, "it came as protobuf").toBe(false)
    const same = asJson.find(each => each.metadata.name === pod.metadata.name)
    expect(pod).toEqual({ apiVersion: "v1", kind: "Pod", ...without(same!) })
  }
})
