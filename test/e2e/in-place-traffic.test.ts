import { expect, test } from "vitest"
import { readinessGate } from "#api/v1alpha1/readiness-gate.ts"
import { createContainerRecreateRequestController } from "#controllers/containerrecreaterequest/controller.ts"
import { settingAnnotations, strategyAnnotation } from "#core/in-place/names.ts"
import { events } from "#runtime/events.ts"
import { runManager } from "#runtime/manager.ts"
import { byVersion, startTraffic } from "#test/support/clients.ts"
import { floor, type Json, onRealNode, quickEnd, until } from "#test/support/floor.ts"
import { surroundings, transportFor, untilTestEnds } from "#test/support/in-process.ts"
import { holdIsInForce, isFree, startUpdates, useHoldPolicy } from "#test/support/real-in-place.ts"
import { beginPulls, startAgent } from "#test/support/real-pulls.ts"

// What a load balancer does: requests at a constant rate to the addresses of ready pods, while these pods are updated in
// place. With maxUnavailable 1, the readiness gate and a grace period, none fails.

useHoldPolicy()

/** Longer than the client can be behind: it hears every tenth of a second which pods are ready, on a busy machine later. */
const graceSeconds = 8

test("a client at a constant rate sees no failed request", async () => {
  const { namespace } = await beginPulls()
  await startAgent(namespace)
  await startUpdates(namespace)
  // It opens the gate of new pods.
  const gates = createContainerRecreateRequestController()
  const recording = { resource: events, verbs: ["create", "patch"] } as const
  const transport = await transportFor(namespace, "gates", [...gates.permissions, recording])
  untilTestEnds(signal => runManager({ ...surroundings, transport, controllers: [gates], leaderElect: false, signal }))
  const { api, kubectlRun, pushImage } = floor()
  const [first, second] = await Promise.all(["1", "2"].map(tag => pushImage(`traffic:v${tag}`)))
  const path = `/apis/apps/v1/namespaces/${namespace}/deployments`
  await api.create(path, {
    metadata: {
      name: "web",
      annotations: { [strategyAnnotation]: "InPlaceOnly", [settingAnnotations.graceSeconds]: String(graceSeconds) },
    },
    spec: {
      replicas: 3,
      selector: { matchLabels: { app: "web" } },
      strategy: { rollingUpdate: { maxUnavailable: 1 } },
      template: {
        metadata: { labels: { app: "web" } },
        spec: {
          ...{ ...onRealNode, ...quickEnd },
          readinessGates: [{ conditionType: readinessGate }],
          containers: [
            {
              name: "web",
              image: first!.reference,
              readinessProbe: { httpGet: { path: "/", port: 8080 }, periodSeconds: 1 },
            },
          ],
        },
      },
    },
  })
  await kubectlRun("-n", namespace, "rollout", "status", "deploy/web", "--timeout=180s")
  const pods = async (): Promise<Json[]> => (await api.get(`/api/v1/namespaces/${namespace}/pods`)).items
  const before = (await pods()).map(({ metadata }) => metadata.uid).sort()

  const traffic = startTraffic({ addresses: [], perSecond: 40 })
  let isOver = false
  const isReady = ({ status, metadata }: Json) =>
    !metadata.deletionTimestamp &&
    status.conditions.some(({ type, status }: Json) => type === "Ready" && status === "True")
  const telling = (async () => {
    for (let told = ""; !isOver; await new Promise(resolve => setTimeout(resolve, 100))) {
      const ready = (await pods()).filter(isReady).map(({ status }) => `${status.podIP}:8080`)
      const now = ready.sort().join()
      if (now !== told && !isOver) traffic.use(ready)
      told = now
    }
  })()

  await holdIsInForce(namespace, "deploy/web", "web")
  await kubectlRun("-n", namespace, "set", "image", "deploy/web", `web=${second!.reference}`)
  await until("the update is complete", async () => isFree(await api.get(`${path}/web`)), { withinMs: 240_000 })
  isOver = true
  await telling
  const result = await traffic.stop()
  expect(result.failures).toEqual([])
  expect(result.sent).toBeGreaterThan(100)
  expect(Object.keys(byVersion(result)).sort()).toEqual(["v1", "v2"])
  expect((await pods()).map(({ metadata }) => metadata.uid).sort()).toEqual(before)
})
