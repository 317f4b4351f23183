import { type DeliverableKind, fenceAnnotation, runAnnotation } from "#core/cluster-fleet/deliverable.ts"
import { judgeDelivered, kindOf, sentManifest, undeliverable, valueAt } from "#core/cluster-fleet/delivered.ts"
import type {
  Answer,
  Applied,
  Contested,
  Delivery,
  FleetTransport,
  Manifest,
  ObjectSeen,
  Reach,
  Refused,
  Removal,
} from "#core/cluster-fleet/transport.ts"
import type { Instant } from "#lib/instant.ts"
import { isFailure } from "#runtime/client/errors.ts"
import type { Client } from "#runtime/client/index.ts"
import type { Clock } from "#runtime/clock.ts"
import type { KubeObject } from "#runtime/resource.ts"
import { type Attention, createAttention } from "./attention.ts"
import type { Connection, Connections } from "./connections.ts"
import { given, refusalOf, trouble, troubleOf } from "./trouble.ts"

export type DirectOptions = {
  clock: Clock
  connections: Connections
  /** Tells this hub's writes on a cluster from another hub's: letters and digits. */
  hubId: string
}

/** A write is given up early: a cluster at the end of a slow line must not keep a worker for long. */
const deadlineMs = 15_000

/**
 * Reaches clusters with a client of their own. Objects are written by server-side apply without force, on condition of
 * what was seen; a cluster that is not worked on costs a probe and nothing else.
 */
export function createDirectTransport({
  clock,
  connections,
  hubId,
}: DirectOptions): FleetTransport & { close(): void } {
  const fieldManager = `aim-hub-${hubId}`
  const attention = new Map<string, Attention>()
  const contacts = new Map<string, Instant>()

  /** Runs with the client of a cluster; whatever fails on the way is a value. */
  async function using<T>(cluster: string, act: (connection: Connection) => Promise<Answer<T>>): Promise<Answer<T>> {
    const connection = await connections.to(cluster)
    if (!connection.ok) return connection
    try {
      const answer = await act(connection.value)
      contacts.set(cluster, clock.now())
      return answer
    } catch (error) {
      const failed = troubleOf(error)
      if (failed.trouble.is === "BadCredential") connections.forget(cluster)
      return failed
    }
  }

  async function read(client: Client, manifest: Manifest): Promise<KubeObject | undefined> {
    try {
      return await client.get(resourceOf(kindOf(manifest)), manifest.metadata)
    } catch (error) {
      if (isFailure(error, "NotFound")) return undefined
      throw error
    }
  }

  const readAll = (client: Client, { objects }: Delivery) =>
    Promise.all(objects.map(({ manifest }) => read(client, manifest)))

  async function apply(client: Client, delivery: Delivery, seen: string | undefined): Promise<Answer<Applied>> {
    const versions = seen?.split(",")
    if (versions && versions.length !== delivery.objects.length)
      return trouble("Conflict", "what was seen is another list of objects")
    const written: string[] = []
    const refused: { index: number; seen: Refused | Contested }[] = []
    for (const [index, each] of delivery.objects.entries()) {
      const version = versions?.[index]
      const body = fenced(sentManifest(each, delivery.run), delivery.fence, version === absent ? undefined : version)
      try {
        const patch = { type: "apply" as const, body, force: false }
        const object = await client.patch(resourceOf(kindOf(each.manifest)), each.manifest.metadata, patch, {
          ...{ fieldManager, deadlineMs },
        })
        written.push(object.metadata.resourceVersion ?? absent)
      } catch (error) {
        const seen = refusalOf(error)
        if (!seen) throw error
        refused.push({ index, seen })
        written.push(version ?? absent)
      }
    }
    return given({ version: written.join(","), refused })
  }

  async function remove(client: Client, { objects, run }: Delivery): Promise<Answer<Removal>> {
    const left: string[] = []
    for (const { manifest, lifetime } of objects.toReversed()) {
      if (lifetime === "Kept") continue
      const found = await read(client, manifest)
      // Another run has taken it over, or a person made it: not ours to delete.
      if (!found || valueAt(found, ["metadata", "annotations", runAnnotation]) !== run) continue
      const { uid, deletionTimestamp } = found.metadata
      const resource = resourceOf(kindOf(manifest))
      if (deletionTimestamp === undefined)
        await client
          .delete(resource, manifest.metadata, { deadlineMs, propagationPolicy: "Background", ...(uid && { uid }) })
          .catch(error => {
            if (!isFailure(error, "NotFound")) throw error
          })
      if (await read(client, manifest)) left.push(manifest.metadata.name)
    }
    return given(left.length === 0 ? { is: "Gone" } : { is: "Leaving", message: `${left.join(", ")} is being deleted` })
  }

  return {
    apply(cluster, delivery, { seen } = {}) {
      const wrong = undeliverable(delivery)
      if (wrong !== undefined) return Promise.resolve(trouble("Undeliverable", wrong))
      attention.get(cluster)?.changed()
      return using(cluster, ({ client }) => apply(client, delivery, seen))
    },
    observe(cluster, delivery) {
      return using(cluster, async ({ client }) => {
        const attending = attention.get(cluster)
        const kept = attending?.kept(delivery)
        const objects = kept?.objects ?? (await readAll(client, delivery))
        const at = kept?.at ?? clock.now()
        if (!kept) attending?.keep(client, delivery, { at, objects })
        const shown = objects.map((object, index): ObjectSeen => {
          const wanted = delivery.objects[index]
          return object && wanted ? judgeDelivered(object, wanted, delivery.run) : { is: "Absent" }
        })
        return given({
          at,
          version: objects.map(object => object?.metadata.resourceVersion ?? absent).join(","),
          ...{ bundle: bundleOf(shown), objects: shown },
        })
      })
    },
    remove(cluster, delivery) {
      attention.get(cluster)?.changed()
      return using(cluster, ({ client }) => remove(client, delivery))
    },
    async probe(cluster) {
      const answer = await using<Reach>(cluster, async ({ client, warning }) => {
        const version = valueAt(await client.raw("/version"), ["gitVersion"])
        const now = clock.now()
        const theirs = client.serverTime()
        return given({
          isReachable: true,
          lastContact: now,
          ...(typeof version === "string" && { version: version.slice(0, 64) }),
          ...(theirs !== undefined && { skewSeconds: Math.round((theirs - now) / 1000) }),
          ...(warning !== undefined && { warning }),
        })
      })
      if (answer.ok || answer.trouble.is !== "Unreachable") return answer
      const lastContact = contacts.get(cluster)
      const { message } = answer.trouble
      return given({ isReachable: false, message, ...(lastContact !== undefined && { lastContact }) })
    },
    subscribe(cluster, onChange) {
      const attending = attention.get(cluster) ?? createAttention(clock)
      attention.set(cluster, attending)
      attending.add(onChange)
      return () => {
        if (attending.drop(onChange) === 0 && attention.get(cluster) === attending) attention.delete(cluster)
      }
    },
    close() {
      for (const each of attention.values()) each.end()
      attention.clear()
      connections.close()
    },
  }
}

/** In place of a resourceVersion. */
const absent = "-"

const resourceOf = ({ group, version, plural, kind, namespaced }: DeliverableKind) => ({
  ...{ group, version, plural, kind, namespaced },
})

function bundleOf(objects: readonly ObjectSeen[]): "Absent" | "Present" | "Leaving" {
  if (objects.every(each => each.is === "Absent")) return "Absent"
  return objects.some(each => each.is === "Present" && each.verdict.is === "Leaving") ? "Leaving" : "Present"
}

const fenced = ({ metadata, ...manifest }: Manifest, fence: string, resourceVersion: string | undefined) => ({
  ...manifest,
  metadata: {
    ...metadata,
    annotations: { ...metadata.annotations, [fenceAnnotation]: fence },
    ...(resourceVersion !== undefined && { resourceVersion }),
  },
})
