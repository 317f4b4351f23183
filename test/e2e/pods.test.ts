import { expect, onTestFinished, test } from "vitest"
import { Pods, podPermissions } from "#controllers/serviceimage/pods.ts"
import { type Diagnosis, diagnose } from "#core/pods/trace.ts"
import { connect } from "#runtime/client/index.ts"
import { systemClock } from "#runtime/clock.ts"
import { runManager } from "#runtime/manager.ts"
import { systemRandom } from "#runtime/random.ts"
import { silentLogger } from "#runtime/silent-logger.ts"
import { ask } from "#test/support/ask.ts"
import {
  floor,
  type Json,
  kubeconfigFor,
  onKwok,
  onRealNode,
  quickEnd,
  serviceAccountAccess,
  uniqueNamespace,
  until,
} from "#test/support/floor.ts"

// What real controllers, a real server and a real kubelet say of pods that do not come to be, seen with the rights that
// are declared for it and no others.

/** An owner in a namespace of its own, and what is known of its pods. */
async function watched() {
  const namespace = await uniqueNamespace()
  const rules = podPermissions.map(({ resource, verbs }) => ({
    apiGroups: [resource.group],
    resources: [resource.plural],
    verbs: [...verbs],
  }))
  const kubeconfig = kubeconfigFor(await serviceAccountAccess(namespace, "watcher", rules))
  const { transport } = await connect({ kubeconfig })
  const stop = new AbortController()
  const opened = Promise.withResolvers<Pods>()
  const ended = runManager({
    transport,
    leaderElect: false,
    clock: systemClock,
    random: systemRandom,
    log: silentLogger,
    signal: stop.signal,
    controllers: [
      {
        name: "watcher",
        permissions: podPermissions,
        setup(wiring) {
          const pods = new Pods(wiring)
          pods.open()
          opened.resolve(pods)
          return { reconcile: async () => {} }
        },
      },
    ],
  })
  onTestFinished(async () => {
    stop.abort()
    await ended
  })
  const pods = await opened.promise
  const { api } = floor()
  const tenant = await api.create(`/api/v1/namespaces/${namespace}/configmaps`, { metadata: { name: "tenant" } })
  const root = { uid: tenant.metadata.uid as string, namespace }
  return {
    namespace,
    trace: () => pods.traceOf(root),
    workload(plural: string, kind: string, image: string, more: { pod?: Json; spec?: Json } = {}) {
      const labels = { app: kind.toLowerCase() }
      const owner = { apiVersion: "v1", kind: "ConfigMap", name: "tenant", uid: root.uid, controller: true }
      const containers = [{ name: "app", image }]
      return api.create(`/apis/apps/v1/namespaces/${namespace}/${plural}`, {
        metadata: { name: kind.toLowerCase(), ownerReferences: [owner] },
        spec: {
          selector: { matchLabels: labels },
          template: { metadata: { labels }, spec: { ...quickEnd, containers, ...more.pod } },
          ...more.spec,
        },
      })
    },
    said: (image: string, isSo: (found: Diagnosis) => boolean = () => true) =>
      until(`a diagnosis of ${image}`, async () => {
        const found = diagnose(pods.traceOf(root), image)
        return found && isSo(found) ? found : undefined
      }),
  }
}

const quota = (namespace: string, hard: Json) =>
  floor().api.create(`/api/v1/namespaces/${namespace}/resourcequotas`, { metadata: { name: "small" }, spec: { hard } })

/** It is counted by its controller, and in force some time after that: tried with a pod that is only pretended to be made. */
const untilFull = (namespace: string) =>
  until("the quota to hold", async () => {
    const tried = { metadata: { name: "tried" }, spec: { containers: [{ name: "app", image: "shop/web:1" }] } }
    const { status, body } = await ask("POST", `/api/v1/namespaces/${namespace}/pods?dryRun=All`, tried)
    return status === 403 && body.message.includes("exceeded quota")
  })

test("a full quota is reported by a ReplicaSet, and by events of kinds without a condition for it", async () => {
  const { namespace, workload, said, trace } = await watched()
  await quota(namespace, { pods: "0" })
  await untilFull(namespace)
  await workload("deployments", "Deployment", "shop/web:1", { pod: onKwok })
  expect(await said("shop/web:1")).toEqual({
    reason: "QuotaExceeded",
    message: "exceeded quota: small, requested: pods=1, used: pods=0, limited: pods=0",
    isTentative: false,
  })
  expect(diagnose(trace(), "shop/web:2")).toBeUndefined()

  await workload("statefulsets", "StatefulSet", "shop/db:1", { pod: onKwok, spec: { serviceName: "db" } })
  expect(await said("shop/db:1")).toMatchObject({
    reason: "QuotaExceeded",
    message: expect.stringMatching(/^exceeded quota: small/),
  })
  expect(trace()).toMatchObject({ pods: 0, lost: [] })

  await floor().api.remove(`/api/v1/namespaces/${namespace}/resourcequotas/small`)
  // Each controller tries again at its own, ever slower pace.
  await until(
    "two pods and nothing wrong",
    async () => trace()?.pods === 2 && diagnose(trace(), "shop/web:1") === undefined && trace()?.troubles.length === 0,
    { withinMs: 240_000 },
  )
})

test("pod security is a denial", async () => {
  const { namespace, workload, said } = await watched()
  await floor().kubectlRun("label", "namespace", namespace, "pod-security.kubernetes.io/enforce=restricted")
  const pod = { ...onKwok, hostNetwork: true }
  const tried = { metadata: { name: "tried" }, spec: { ...pod, containers: [{ name: "app", image: "shop/agent:1" }] } }
  await until("the label to be in force", () =>
    floor()
      .api.create(`/api/v1/namespaces/${namespace}/pods?dryRun=All`, tried)
      .then(
        () => false,
        error => error.status === 403,
      ),
  )
  await workload("daemonsets", "DaemonSet", "shop/agent:1", { pod })
  const found = await said("shop/agent:1")
  expect(found.reason).toBe("AdmissionDenied")
  expect(found.message).toMatch(/^violates PodSecurity "restricted:latest": /)
})

test("an image that no registry has is a failed pull, and a crash is unhealthy, on a real kubelet", async () => {
  const { workload, said, trace } = await watched()
  const missing = `${floor().registry}/shop/missing:9`
  await workload("deployments", "Deployment", missing, { pod: onRealNode })
  // Before that its kubelet may hold the pull back for a moment.
  const pulled = await said(missing, ({ message }) => /not found$/.test(message))
  expect(pulled.reason).toBe("ImagePullFailed")

  const { reference } = await floor().pushImage("pods-crash:1")
  const containers = [{ name: "app", image: reference, command: ["/bin/sh", "-c", "exit 3"] }]
  await workload("statefulsets", "StatefulSet", reference, {
    pod: { ...onRealNode, containers },
    spec: { serviceName: "db" },
  })
  // It is unhealthy after its first exit, and in a loop soon after that.
  const crashed = await said(reference, ({ message }) => /container app exited with 3 \(Error\)$/.test(message))
  expect(crashed).toMatchObject({ reason: expect.stringMatching(/^(Unhealthy|CrashLoop)$/), isTentative: false })
  expect(diagnose(trace(), missing)).toMatchObject({ reason: "ImagePullFailed" })
})
