import { readinessGate } from "#api/v1alpha1/readiness-gate.ts"
import { daemonSets, deployments, statefulSets } from "#controllers/in-place/resources.ts"
import { heldMark, settingAnnotations, strategyAnnotation } from "#core/in-place/names.ts"
import type { Client } from "#runtime/client/client.ts"
import type { Resource } from "#runtime/resource.ts"
import { type Json, until } from "#tools/kube/api.ts"
import type { Progress } from "./progress.ts"

export const imageOf = (tag: string) => `registry.example.com/team/web:${tag}`

export type Kind = "Deployment" | "StatefulSet" | "DaemonSet"

/** `replicas` of a DaemonSet is the number of nodes. */
export type Web = {
  kind?: Kind
  name: string
  namespace: string
  replicas: number
  hasGate?: boolean
  partition?: string
}

type Rolled = { readonly updated: number; readonly available: number; readonly all: number }

type KindOfWorkload = {
  readonly resource: Resource
  /** What its spec has beside selector and template. A quarter of the pods at once, whatever the kind. */
  spec(web: Web): object
  rolled(status: Json): Rolled
  /** How many writes a pod may cost, without the gate; the gate costs two more. */
  readonly mostWrites: number
}

const quarter = { rollingUpdate: { maxUnavailable: "25%" } }

export const kinds: Readonly<Record<Kind, KindOfWorkload>> = {
  Deployment: {
    resource: deployments,
    spec: ({ replicas }) => ({ replicas }),
    rolled: ({ updatedReplicas: updated, availableReplicas: available, replicas: all }) => ({
      updated,
      available,
      all,
    }),
    mostWrites: 1,
  },
  // Its controller finds the revision of a pod by a label, and that is one more write.
  StatefulSet: {
    resource: statefulSets,
    spec: ({ name, replicas }) => ({
      ...{ replicas, serviceName: name, podManagementPolicy: "Parallel" },
      updateStrategy: quarter,
    }),
    rolled: ({ updatedReplicas, availableReplicas: available, replicas: all, currentRevision, updateRevision }) => ({
      updated: currentRevision === updateRevision ? updatedReplicas : 0,
      ...{ available, all },
    }),
    mostWrites: 2,
  },
  DaemonSet: {
    resource: daemonSets,
    spec: () => ({ updateStrategy: quarter }),
    rolled: ({ updatedNumberScheduled: updated, numberAvailable: available, currentNumberScheduled: all }) => ({
      ...{ updated, available, all },
    }),
    mostWrites: 2,
  },
}

export const kindOf = ({ kind = "Deployment" }: Web): KindOfWorkload => kinds[kind]
export const titleOf = ({ kind = "Deployment", hasGate }: Web) => (hasGate ? `${kind} with the gate` : kind)

/** A workload that has opted in. Two containers: one of them is updated. */
export async function createWeb(client: Client, web: Web): Promise<void> {
  const { name, namespace, hasGate = false, partition } = web
  const { resource, spec } = kindOf(web)
  const labels = { app: name }
  await client.create(resource, {
    metadata: {
      name,
      namespace,
      annotations: {
        [strategyAnnotation]: "InPlaceIfPossible",
        ...(partition && { [settingAnnotations.partition]: partition }),
      },
    },
    spec: {
      ...spec(web),
      selector: { matchLabels: labels },
      template: {
        metadata: { labels },
        spec: {
          ...(hasGate && { readinessGates: [{ conditionType: readinessGate }] }),
          tolerations: [{ key: "kwok.x-k8s.io/node", operator: "Exists" }],
          containers: [
            { name: "web", image: imageOf("v0") },
            { name: "side", image: imageOf("side") },
          ],
        },
      },
    },
  } as Json)
}

/** As `kubectl rollout status` decides it, and no longer held. */
function isRolledOut(web: Web, { metadata, status = {} }: Json): boolean {
  const { updated = 0, available = 0, all = 0 } = kindOf(web).rolled(status)
  return (
    metadata.annotations?.[heldMark] === undefined &&
    (status.observedGeneration ?? 0) >= metadata.generation &&
    [updated, available, all].every(count => count === web.replicas)
  )
}

export const rolledOut = (client: Client, web: Web, progress?: Progress, withinMs = 1_800_000) =>
  until(
    `${web.name} to be rolled out`,
    async () => {
      const found: Json = await client.get(kindOf(web).resource, web)
      progress?.at(kindOf(web).rolled(found.status ?? {}).available ?? 0)
      return isRolledOut(web, found)
    },
    { withinMs, everyMs: 50 },
  )

/** Whether changes of this workload go in place. */
export const opt = (client: Client, web: Web, isIn: boolean) =>
  client.patch(kindOf(web).resource, web, {
    type: "merge",
    body: { metadata: { annotations: { [strategyAnnotation]: isIn ? "InPlaceIfPossible" : null } } },
  })

export const setImage = (client: Client, web: Web, image: string) =>
  client.patch(kindOf(web).resource, web, {
    type: "strategic",
    body: { spec: { template: { spec: { containers: [{ name: "web", image }] } } } },
  })
