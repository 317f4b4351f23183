import { fenceAnnotation } from "#core/cluster-fleet/deliverable.ts"
import { undeliverable } from "#core/cluster-fleet/delivered.ts"
import type { Answer, Applied, Delivery, FleetTransport, ObjectSeen } from "#core/cluster-fleet/transport.ts"
import type { Cache } from "#runtime/cache/index.ts"
import { isFailure } from "#runtime/client/errors.ts"
import type { Client } from "#runtime/client/index.ts"
import type { Clock } from "#runtime/clock.ts"
import { keyOf, nameOf, type ObjectName } from "#runtime/resource.ts"
import { given, trouble, troubleOf } from "../trouble.ts"
import { type HeldCluster, type HeldWork, objectSeen } from "./held.ts"
import { annotationsOf, hashOf, manifestWorks, type WorkSpec, workName, workObject, workSpec } from "./work.ts"

export type OcmOptions = {
  clock: Clock
  /** Of the hub; a ManifestWork is all that it writes. */
  client: Client
  /**
   * All ManifestWorks, not those with a label: an agent can take a label away. Projected by `holdWork` and `holdCluster`,
   * and run by the caller.
   */
  works: Cache<HeldWork>
  clusters: Cache<HeldCluster>
  hubId: string
}

/** How long a write is waited for until the cache shows it. */
const shownMs = 10_000

/** Reaches clusters by the agents of Open Cluster Management: a ManifestWork for each bundle, in the cluster's namespace. */
export function createOcmTransport(options: OcmOptions): FleetTransport & { close(): void } {
  const { clock, client, works, clusters, hubId } = options
  /** What this process wrote last, by work: other content since then is another writer's. */
  const written = new Map<string, string>()
  const listeners = new Map<string, Set<() => void>>()
  const changed = (cluster: string) => {
    for (const listener of [...(listeners.get(cluster) ?? [])]) listener()
  }
  const ends = [
    works.subscribe(({ key }) => changed(nameOf(key).namespace ?? "")),
    clusters.subscribe(({ key }) => changed(key)),
  ]

  /** Why nothing can be said: OCM is not there, or the cluster is not. */
  function unusable(cluster: string) {
    const failure = works.failure ?? clusters.failure
    if (!works.hasSynced || !clusters.hasSynced) {
      if (failure?.kind === "NotFound")
        return trouble("NotInstalled", "Open Cluster Management is not installed on this hub")
      if (failure?.kind === "Forbidden") return trouble("Forbidden", failure.message)
      return trouble("Unreachable", "the ManifestWorks of this hub are not read yet")
    }
    return clusters.get(cluster)
      ? undefined
      : trouble("UnknownCluster", `Open Cluster Management has no cluster ${cluster}`)
  }

  async function apply(cluster: string, delivery: Delivery, seen: string | undefined): Promise<Answer<Applied>> {
    const key = keyOf({ namespace: cluster, name: workName(delivery.bundle) })
    const held = works.get(key)
    if (seen !== undefined && seen !== versionOf(held))
      return trouble("Conflict", "the work has changed since it was seen")
    if (held?.isLeaving) return trouble("Conflict", "the work is being removed")
    const spec = workSpec(delivery, hubId)
    const hash = hashOf(spec)
    if (held && held.hash === hash && held.fence === delivery.fence) {
      written.set(key, hash)
      return given({ version: versionOf(held), refused: [] })
    }
    try {
      const answer = await write(client, cluster, delivery, spec, held)
      const { uid = "", generation = 0, resourceVersion } = answer.metadata
      written.set(key, hash)
      await shown(options, { namespace: cluster, name: workName(delivery.bundle) }, resourceVersion)
      return given({ version: versionOf({ uid, generation, fence: delivery.fence }), refused: [] })
    } catch (error) {
      // A failed `test` is Invalid: what it was decided from has changed.
      if (held && isFailure(error, "Invalid") && error.status === 422) return trouble("Conflict", error.message)
      if (!held && isFailure(error, "NotFound")) return trouble("UnknownCluster", error.message)
      return troubleOf(error)
    }
  }

  /** Other content than was sent: not ours yet, or another writer's. */
  function otherContent(key: string, wanted: string): ObjectSeen {
    return written.get(key) === wanted
      ? { is: "Contested", message: "another writer changes the ManifestWork of this run" }
      : { is: "Unknown", message: "the ManifestWork holds other content" }
  }

  return {
    async apply(cluster, delivery, { seen } = {}) {
      const wrong = undeliverable(delivery)
      if (wrong !== undefined) return trouble("Undeliverable", wrong)
      return unusable(cluster) ?? (await apply(cluster, delivery, seen))
    },
    async observe(cluster, delivery) {
      const failed = unusable(cluster)
      if (failed) return failed
      const key = keyOf({ namespace: cluster, name: workName(delivery.bundle) })
      const held = works.get(key)
      const at = clock.now()
      if (!held)
        return given({ at, bundle: "Absent", objects: delivery.objects.map(() => ({ is: "Absent" as const })) })
      const wanted = hashOf(workSpec(delivery, hubId))
      const isWanted = held.hash === wanted
      return given({
        ...{ at, version: versionOf(held), bundle: held.isLeaving ? "Leaving" : "Present" },
        objects: delivery.objects.map(each => (isWanted ? objectSeen(held, each) : otherContent(key, wanted))),
      })
    },
    async remove(cluster, { bundle }) {
      const failed = unusable(cluster)
      if (failed) return failed
      const name = { namespace: cluster, name: workName(bundle) }
      const held = works.get(keyOf(name))
      written.delete(keyOf(name))
      if (!held) return given({ is: "Gone" })
      const leaving = given({ is: "Leaving" as const, message: "the cluster has not let go of it yet" })
      if (held.isLeaving) return leaving
      try {
        await client.delete(manifestWorks, name, { uid: held.uid })
      } catch (error) {
        return isFailure(error, "NotFound") ? given({ is: "Gone" }) : troubleOf(error)
      }
      return leaving
    },
    async probe(cluster) {
      const failed = unusable(cluster)
      if (failed) return failed
      const { since, ...reach } = clusters.get(cluster)?.reach ?? { isReachable: false }
      // The condition is the hub's own word, by the hub's own clock; the cluster's Lease is written by another one.
      const lastContact = reach.isReachable ? clock.now() : since
      return given({ ...reach, ...(lastContact !== undefined && { lastContact }) })
    },
    subscribe(cluster, onChange) {
      const own = listeners.get(cluster) ?? new Set()
      listeners.set(cluster, own)
      own.add(onChange)
      return () => {
        own.delete(onChange)
        if (own.size === 0 && listeners.get(cluster) === own) listeners.delete(cluster)
      }
    },
    close() {
      for (const end of ends) end()
      listeners.clear()
    },
  }
}

/** Waits until the cache shows a write: a look that follows must not be about what was there before. */
async function shown({ clock, works }: OcmOptions, name: ObjectName, resourceVersion = "") {
  const end = new AbortController()
  const cancel = clock.after(shownMs, () => end.abort(new Error("late")))
  await works.reached(name, resourceVersion, end.signal).catch(() => undefined) // the next look may be old: it is compared
  cancel()
}

async function write(client: Client, cluster: string, delivery: Delivery, spec: WorkSpec, held: HeldWork | undefined) {
  const object = workObject(cluster, delivery, spec)
  if (!held) return client.create(manifestWorks, object)
  // Not on condition of the resourceVersion, which every word of the agent changes: of what we and only we change.
  return client.patch(manifestWorks, object.metadata, {
    type: "json",
    body: [
      { op: "test", path: "/metadata/uid", value: held.uid },
      { op: "test", path: "/metadata/generation", value: held.generation },
      ...(held.fence === undefined ? [] : [{ op: "test", path: annotationPath(fenceAnnotation), value: held.fence }]),
      ...(held.fence === undefined
        ? [{ op: "add", path: "/metadata/annotations", value: annotationsOf(delivery) }]
        : Object.entries(annotationsOf(delivery)).map(([key, value]) => ({
            op: "add",
            path: annotationPath(key),
            value,
          }))),
      ...(held.hash === hashOf(spec) ? [] : [{ op: "replace", path: "/spec", value: spec }]),
    ],
  })
}

const annotationPath = (key: string) => `/metadata/annotations/${key.replaceAll("/", "~1")}`

/** Changes with what was sent and with the fence, and with nothing that the agent reports. */
const versionOf = (held: Pick<HeldWork, "uid" | "generation" | "fence"> | undefined) =>
  held ? [held.uid, held.generation, held.fence ?? ""].join(":") : ""
