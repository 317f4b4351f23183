import { fenceAnnotation } from "#core/cluster-fleet/deliverable.ts"
import { judgeDelivered, nameOf, sentManifest, undeliverable } from "#core/cluster-fleet/delivered.ts"
import type {
  Contested,
  DeliveredObject,
  Delivery,
  FleetTransport,
  Manifest,
  ObjectSeen,
  Refused,
} from "#core/cluster-fleet/transport.ts"
import { isSame } from "#lib/same.ts"
import type { Clock } from "#runtime/clock.ts"
import { given, trouble } from "./trouble.ts"

/** What a cluster of the fake does with what it gets. Every part may be changed while a story runs. */
export type SpokeScript = {
  /** By itself an object is Ready after this long. Undefined: only when the story says so. */
  readyAfterMs?: number | undefined
  /** Instead of becoming Ready it says that it cannot go on. */
  stalls?: { reason: string; message: string } | undefined
  /** What an apply of an object is answered with. */
  answers?: ((manifest: Manifest) => Refused | Contested | undefined) | undefined
  isAway?: boolean
  /** A bundle is kept on the hub and arrives when the cluster is back, as with OCM. Default: an apply fails then. */
  hasMailbox?: boolean
}

type Stored = Manifest & { metadata: { generation: number; uid: string; finalizers?: string[] } }
type Bundle = {
  delivery: Delivery
  version: number
  arrived: number
  isLeaving: boolean
  answers: Map<string, Refused | Contested>
}

export type FakeSpoke = {
  script: SpokeScript
  setAway(isAway: boolean): void
  read(manifest: Manifest): Stored | undefined
  /** Another writer changes it: the generation rises unless only the status differs. */
  edit(manifest: Manifest, change: (object: Stored) => void): void
  /** The controllers there say that it is ready, for what it is now. */
  settle(manifest: Manifest): void
  delete(manifest: Manifest): void
  /** How often an apply reached the cluster and changed an object. */
  writes: string[]
}

/** A transport in memory on a clock: for stories about many clusters. */
export function createFakeTransport({ clock, clusters }: { clock: Clock; clusters: Record<string, SpokeScript> }) {
  const spokes = new Map(Object.entries(clusters).map(([name, script]) => [name, createSpoke(clock, script)]))
  const known = (cluster: string) => spokes.get(cluster)
  const unknown = (cluster: string) => trouble("UnknownCluster", `no cluster is named ${cluster}`)
  const away = (cluster: string) => trouble("Unreachable", `${cluster} does not answer`)

  const transport: FleetTransport = {
    async apply(cluster, delivery, { seen } = {}) {
      const wrong = undeliverable(delivery)
      if (wrong !== undefined) return trouble("Undeliverable", wrong)
      const spoke = known(cluster)
      if (!spoke) return unknown(cluster)
      if (spoke.script.isAway && !spoke.script.hasMailbox) return away(cluster)
      const before = spoke.bundles.get(delivery.bundle)
      if (seen !== undefined && seen !== versionOf(before))
        return trouble("Conflict", "it has changed since it was seen")
      if (before?.isLeaving) return trouble("Conflict", "it is being removed")
      const isSameAgain = before !== undefined && isSame(before.delivery, delivery)
      const version = isSameAgain ? before.version : (before?.version ?? 0) + 1
      const bundle = { delivery, version, arrived: before?.arrived ?? 0, isLeaving: false, answers: new Map() }
      spoke.bundles.set(delivery.bundle, bundle)
      spoke.receive()
      const refused = spoke.script.hasMailbox
        ? []
        : delivery.objects.flatMap(({ manifest }, index) => {
            const seen = bundle.answers.get(nameOf(manifest))
            return seen ? [{ index, seen }] : []
          })
      return given({ version: `${version}`, refused })
    },
    async observe(cluster, delivery) {
      const spoke = known(cluster)
      if (!spoke) return unknown(cluster)
      if (spoke.script.isAway && !spoke.script.hasMailbox) return away(cluster)
      const bundle = spoke.bundles.get(delivery.bundle)
      const at = clock.now()
      if (!bundle)
        return given({ at, bundle: "Absent", objects: delivery.objects.map(() => ({ is: "Absent" as const })) })
      const isStale = bundle.arrived !== bundle.version || !isSame(bundle.delivery.objects, delivery.objects)
      const look = (each: DeliveredObject): ObjectSeen =>
        isStale ? { is: "Unknown", message: "the cluster has not answered yet" } : spoke.look(each, bundle)
      return given({
        at,
        version: `${bundle.version}`,
        bundle: bundle.isLeaving ? "Leaving" : "Present",
        objects: delivery.objects.map(look),
      })
    },
    async remove(cluster, { bundle: name }) {
      const spoke = known(cluster)
      if (!spoke) return unknown(cluster)
      if (spoke.script.isAway && !spoke.script.hasMailbox) return away(cluster)
      const bundle = spoke.bundles.get(name)
      if (!bundle) return given({ is: "Gone" })
      if (!bundle.isLeaving) bundle.version++
      bundle.isLeaving = true
      // What no cluster has seen is gone at once.
      if (bundle.arrived === 0) spoke.bundles.delete(name)
      spoke.receive()
      const isGone = !spoke.bundles.has(name)
      return given(isGone ? { is: "Gone" } : { is: "Leaving", message: "the cluster has not removed it yet" })
    },
    async probe(cluster) {
      const spoke = known(cluster)
      if (!spoke) return unknown(cluster)
      const { isAway = false } = spoke.script
      if (isAway)
        return given({ isReachable: false, lastContact: spoke.lastContact(), message: `${cluster} does not answer` })
      return given({ isReachable: true, lastContact: clock.now(), version: "v1.36.3" })
    },
    subscribe(cluster, onChange) {
      known(cluster)?.listeners.add(onChange)
      return () => known(cluster)?.listeners.delete(onChange)
    },
  }
  return { transport, spoke: (name: string) => spokes.get(name) as FakeSpoke }
}

const versionOf = (bundle: Bundle | undefined) => (bundle ? `${bundle.version}` : "")

function createSpoke(clock: Clock, script: SpokeScript) {
  const objects = new Map<string, Stored>()
  const bundles = new Map<string, Bundle>()
  const listeners = new Set<() => void>()
  const writes: string[] = []
  let uids = 0
  let lastContact = clock.now()
  const changed = () => {
    for (const listener of [...listeners]) listener()
  }

  function put(manifest: Manifest) {
    const name = nameOf(manifest)
    const before = objects.get(name)
    const metadata = before?.metadata
    const generation = metadata?.generation ?? 0
    const isNew = !before || !isSame(contentOf(before), contentOf(manifest))
    if (before && !isNew && isSame(before.metadata.annotations, manifest.metadata.annotations)) return
    writes.push(name)
    const stored: Stored = {
      ...manifest,
      metadata: { ...manifest.metadata, generation: generation + (isNew ? 1 : 0), uid: metadata?.uid ?? `${++uids}` },
      ...(before?.status !== undefined && { status: before.status }),
    }
    objects.set(name, stored)
    const { readyAfterMs } = script
    if (readyAfterMs !== undefined && isNew) clock.after(readyAfterMs, () => finish(name, stored.metadata.generation))
  }

  function finish(name: string, generation: number) {
    const object = objects.get(name)
    if (object?.metadata.generation !== generation) return
    const { stalls } = script
    const condition = (type: string, status: string, { reason, message }: { reason: string; message: string }) => ({
      ...{ type, status, reason, message, observedGeneration: generation },
    })
    const fine = { reason: "Ready", message: "" }
    object.status = {
      observedGeneration: generation,
      conditions: [
        condition("Ready", stalls ? "False" : "True", stalls ?? fine),
        condition("Stalled", stalls ? "True" : "False", stalls ?? fine),
      ],
    }
    changed()
  }

  function drop(manifest: Manifest) {
    const object = objects.get(nameOf(manifest))
    if (!object) return
    if (object.metadata.finalizers?.length)
      Object.assign(object.metadata, { deletionTimestamp: "2026-01-01T00:00:00Z" })
    else objects.delete(nameOf(manifest))
  }

  /** What waits on the hub arrives. */
  function receive() {
    if (script.isAway) return
    lastContact = clock.now()
    for (const [name, bundle] of bundles) {
      if (bundle.isLeaving) {
        for (const { manifest, lifetime } of bundle.delivery.objects) if (lifetime === "Removed") drop(manifest)
        const isThere = bundle.delivery.objects.some(
          ({ manifest, lifetime }) => lifetime === "Removed" && objects.has(nameOf(manifest)),
        )
        if (!isThere) bundles.delete(name)
        continue
      }
      const { delivery } = bundle
      for (const each of bundle.arrived === bundle.version ? [] : delivery.objects) {
        const answer = script.answers?.(each.manifest)
        if (answer) bundle.answers.set(nameOf(each.manifest), answer)
        else put(fenced(sentManifest(each, delivery.run), delivery.fence))
      }
      bundle.arrived = bundle.version
    }
    changed()
  }

  return {
    script,
    writes,
    bundles,
    listeners,
    receive,
    lastContact: () => lastContact,
    look(wanted: DeliveredObject, { answers, delivery }: Bundle): ObjectSeen {
      const answer = answers.get(nameOf(wanted.manifest))
      if (answer) return answer
      const object = objects.get(nameOf(wanted.manifest))
      return object ? judgeDelivered(object, wanted, delivery.run) : { is: "Absent" }
    },
    setAway(isAway: boolean) {
      if (isAway) lastContact = clock.now()
      script.isAway = isAway
      if (!isAway) receive()
      changed()
    },
    read: (manifest: Manifest) => objects.get(nameOf(manifest)),
    edit(manifest: Manifest, change: (object: Stored) => void) {
      const object = objects.get(nameOf(manifest))
      if (!object) return
      const before = structuredClone(contentOf(object))
      change(object)
      if (!isSame(before, contentOf(object))) object.metadata.generation++
      changed()
    },
    settle(manifest: Manifest) {
      const object = objects.get(nameOf(manifest))
      if (object) finish(nameOf(manifest), object.metadata.generation)
    },
    delete(manifest: Manifest) {
      drop(manifest)
      changed()
    },
  }
}

const contentOf = ({ metadata: _, status: __, ...content }: Manifest & { status?: unknown }) => content

const fenced = (manifest: Manifest, fence: string): Manifest => ({
  ...manifest,
  metadata: { ...manifest.metadata, annotations: { ...manifest.metadata.annotations, [fenceAnnotation]: fence } },
})
