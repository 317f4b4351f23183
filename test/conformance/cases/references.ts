import { onRealNode } from "../../support/floor.ts"
import { type Json, type Script, topic } from "../harness/script.ts"
import { change, configMap } from "./objects.ts"
import { podStatus } from "./views.ts"

const pod = (on: Script, fields: Json = {}): Json =>
  change(
    {
      metadata: { name: "a" },
      spec: {
        ...onRealNode,
        terminationGracePeriodSeconds: 0,
        automountServiceAccountToken: false,
        containers: [{ name: "app", image: `${on.registry}/web:1` }],
      },
    },
    fields,
  )

const isReady = (object: Json) =>
  object?.status?.conditions?.some(({ type, status }: Json) => type === "Ready" && status === "True")
const isRefused = (object: Json) =>
  object?.status?.containerStatuses?.[0]?.state?.waiting?.reason === "CreateContainerConfigError"

/**
 * What was said in warnings, each sentence once. A busy kubelet that has not yet read a map or a secret says so first,
 * and asks again.
 */
async function warnings(on: Script): Promise<string[]> {
  const { items } = await on.quietly.list("events")
  const said = items
    .filter(({ type, involvedObject }: Json) => type === "Warning" && involvedObject.name === "a")
    .map(({ reason, message }: Json) => `${reason}: ${message}`)
    .filter((sentence: string) => !sentence.includes("failed to sync"))
  return [...new Set<string>(said)].sort()
}

async function refused(on: Script, fields: Json) {
  await on.quietly.create("pods", pod(on, fields))
  on.note("status", podStatus(await on.untilObject("pods", "a", isRefused)))
  await on.until("it is said", async () => (await warnings(on)).length > 0)
  on.note("warnings", await warnings(on))
}

async function unmounted(on: Script, fields: Json) {
  await on.quietly.create("pods", pod(on, fields))
  await on.until("it is said", async () => (await warnings(on)).length > 0)
  on.note("warnings", await warnings(on))
  const isTold = (object: Json) => object.status.containerStatuses?.length > 0
  on.note("status", podStatus(await on.untilObject("pods", "a", isTold)))
}

async function runs(on: Script, fields: Json) {
  await on.quietly.create("pods", pod(on, fields))
  const { status } = await on.untilObject("pods", "a", isReady)
  on.note("phase", status.phase)
}

const env = (source: Json) => ({ "spec.containers.0.env": [{ name: "X", valueFrom: source }] })
const envFrom = (source: Json) => ({ "spec.containers.0.envFrom": [source] })
const unused = (source: Json) => ({ "spec.volumes": [{ name: "v", ...source }] })
const volume = (source: Json) => ({
  ...unused(source),
  "spec.containers.0.volumeMounts": [{ name: "v", mountPath: "/v" }],
})

export const references = topic(
  "what pods need",
  "kubelet",
  {
    "a key of a map that is not there": on => refused(on, env({ configMapKeyRef: { name: "m", key: "k" } })),
    "a key that a map does not have": async on => {
      await on.quietly.create("configmaps", configMap("m", { other: "x" }))
      await refused(on, env({ configMapKeyRef: { name: "m", key: "k" } }))
    },
    "a key of a secret that is not there": on => refused(on, env({ secretKeyRef: { name: "s", key: "k" } })),
    "a key that a secret does not have": async on => {
      await on.quietly.create("secrets", { metadata: { name: "s" }, stringData: { other: "x" } })
      await refused(on, env({ secretKeyRef: { name: "s", key: "k" } }))
    },
    "a whole secret that is not there": on => refused(on, envFrom({ secretRef: { name: "s" } })),
    "what may be missing": on =>
      runs(on, {
        ...env({ configMapKeyRef: { name: "m", key: "k", optional: true } }),
        ...envFrom({ secretRef: { name: "s", optional: true } }),
        ...volume({ configMap: { name: "m", optional: true } }),
      }),
    "a map that comes later": async on => {
      await refused(on, envFrom({ configMapRef: { name: "m" } }))
      await on.quietly.create("configmaps", configMap("m", { k: "v" }))
      const { status } = await on.untilObject("pods", "a", isReady)
      on.note("restarts", status.containerStatuses[0].restartCount)
    },
    "a volume that no container mounts": on => runs(on, unused({ configMap: { name: "m" } })),
    "a volume of a map that is not there": on => unmounted(on, volume({ configMap: { name: "m" } })),
    "a volume of a secret that is not there": on => unmounted(on, volume({ secret: { secretName: "s" } })),
    "a volume of a key that a map does not have": async on => {
      await on.quietly.create("configmaps", configMap("m", { other: "x" }))
      await unmounted(on, volume({ configMap: { name: "m", items: [{ key: "k", path: "p" }] } }))
    },
    "a volume of a key that a secret does not have": async on => {
      await on.quietly.create("secrets", { metadata: { name: "s" }, stringData: { other: "x" } })
      await unmounted(on, volume({ secret: { secretName: "s", items: [{ key: "k", path: "p" }] } }))
    },
    "a projected volume of what is not there": on =>
      unmounted(on, volume({ projected: { sources: [{ secret: { name: "s" } }] } })),
    "a volume whose secret comes later": async on => {
      await unmounted(on, volume({ secret: { secretName: "s" } }))
      await on.quietly.create("secrets", { metadata: { name: "s" }, stringData: { k: "v" } })
      await on.untilObject("pods", "a", isReady)
    },
    "a pod that goes before its volume comes": async on => {
      await unmounted(on, volume({ configMap: { name: "m" } }))
      await on.quietly.remove("pods", "a")
      await on.untilObject("pods", "a", object => object === undefined)
    },
  },
  { withManagedFields: false, runsPods: true },
)
