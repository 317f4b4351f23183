import type { Json } from "#cluster-sim/index.ts"
import { formatInstant, type Instant } from "#lib/instant.ts"
import type { Controller } from "#runtime/controller.ts"
import type { Resource } from "#runtime/resource.ts"

const takesMs = 3000

/**
 * Brings objects to what their spec says without pods: each is up to date three seconds after its spec changed, unless
 * its image's tag begins with `bad` or it has the label `sick`. An object that becomes sick loses its health at once.
 */
export const operatorOf = (resource: Resource): Controller => ({
  name: "operator",
  permissions: [],
  setup({ watch, enqueue, client, clock }) {
    const objects = watch(resource, {
      project: object => ({ resourceVersion: object.metadata.resourceVersion ?? "", object: object as Json }),
    })
    objects.subscribe(({ key }) => enqueue(key))
    const since = new Map<string, { state: string; at: Instant }>()
    return {
      async reconcile(key) {
        const object = objects.get(key)?.object
        if (!object || object.metadata.deletionTimestamp) return
        const image = imageOf(object)
        if (!image) return
        const { uid, generation, resourceVersion, name, namespace } = object.metadata
        const now = clock.now()
        const isHopeless = /:bad/.test(image) || object.metadata.labels?.sick !== undefined
        const state = `${uid} ${generation} ${isHopeless}`
        if (since.get(key)?.state !== state) since.set(key, { state, at: now })
        const readyAt = since.get(key)!.at + takesMs
        const status = statusOf(object, !isHopeless && now >= readyAt, formatInstant(now))
        if (JSON.stringify(status) !== JSON.stringify(object.status ?? {})) {
          const body = { metadata: { resourceVersion }, status }
          await client.patch(resource, { name, namespace }, { type: "merge", body }, { subresource: "status" })
        }
        return isHopeless || now >= readyAt ? undefined : readyAt
      },
    }
  },
})

const imageOf = ({ spec }: Json): string | undefined => spec.template?.spec.containers[0].image ?? spec.image

function statusOf({ kind, metadata, spec, status = {} }: Json, isUpToDate: boolean, now: string): Json {
  const { generation } = metadata
  if (kind === "Deployment") {
    const { replicas } = spec
    const ready = isUpToDate ? replicas : 0
    const counts = { replicas, updatedReplicas: ready, readyReplicas: ready, availableReplicas: ready }
    return { ...status, observedGeneration: generation, ...counts }
  }
  const condition = (type: string, isTrue: boolean) => {
    const before = status.conditions?.find((each: Json) => each.type === type)
    const value = isTrue ? "True" : "False"
    const lastTransitionTime = before?.status === value ? before.lastTransitionTime : now
    return { type, status: value, reason: "Quick", message: "", observedGeneration: generation, lastTransitionTime }
  }
  const wasDeployed = status.conditions?.some((each: Json) => each.type === "Deployed" && each.status === "True")
  return {
    observedGeneration: generation,
    conditions: [condition("UpToDate", isUpToDate), condition("Deployed", isUpToDate || wasDeployed === true)],
  }
}
