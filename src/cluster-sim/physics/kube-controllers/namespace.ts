import { formatInstant, type Instant, parseInstant } from "#lib/instant.ts"
import type { ServedKind } from "../../apiserver/kind.ts"
import type { Json, Obj } from "../../object.ts"
import { StatusError } from "../../status-error.ts"
import type { Part, PhysicsWorld } from "../world.ts"
import type { Condition } from "./conditions.ts"
import { keyOf, loop, nameOf, servedKind } from "./loop.ts"
import { manager, tolerateAbsence } from "./owned.ts"
import { isTerminal } from "./pods.ts"
import { same } from "./same.ts"

/** The real controller waits this long, because another API server may not know of the deletion yet. */
const graceMs = 5000
const finalizerSeconds = 15

/** The remaining objects of one kind after all were deleted. */
export type Remains = { kind: Pick<ServedKind, "group" | "plural">; objects: readonly Obj[] }

const fine: [type: string, reason: string, message: string][] = [
  ["NamespaceDeletionDiscoveryFailure", "ResourcesDiscovered", "All resources successfully discovered"],
  ["NamespaceDeletionGroupVersionParsingFailure", "ParsedGroupVersions", "All legacy kube types successfully parsed"],
  [
    "NamespaceDeletionContentFailure",
    "ContentDeleted",
    "All content successfully deleted, may be waiting on finalization",
  ],
  ["NamespaceContentRemaining", "ContentRemoved", "All content successfully removed"],
  ["NamespaceFinalizersRemaining", "ContentHasNoFinalizers", "All content-preserving finalizers finished"],
]

/** Why a namespace still exists: the objects that remain in it, and the finalizers that hold them. */
function conditionsOf(old: readonly Condition[], remains: readonly Remains[], now: Instant): Condition[] {
  const kinds = remains
    .filter(({ objects }) => objects.length > 0)
    .map(({ kind, objects }) => `${kind.plural}.${kind.group} has ${objects.length} resource instances`)
  const byFinalizer = new Map<string, number>()
  for (const { metadata } of remains.flatMap(({ objects }) => objects))
    for (const finalizer of metadata.finalizers ?? []) byFinalizer.set(finalizer, (byFinalizer.get(finalizer) ?? 0) + 1)
  const held = [...byFinalizer].map(([finalizer, count]) => `${finalizer} in ${count} resource instances`)

  const said: Record<string, [string, string]> = {}
  if (kinds.length > 0)
    said.NamespaceContentRemaining = ["SomeResourcesRemain", `Some resources are remaining: ${kinds.sort().join(", ")}`]
  if (held.length > 0)
    said.NamespaceFinalizersRemaining = [
      "SomeFinalizersRemain",
      `Some content in the namespace has finalizers remaining: ${held.sort().join(", ")}`,
    ]
  return fine.map(([type, okReason, okMessage]) => {
    const [reason, message] = said[type] ?? [okReason, okMessage]
    const status = said[type] ? "True" : "False"
    const before = old.find(condition => condition.type === type)
    const since = before?.status === status ? before.lastTransitionTime : undefined
    return { type, status, lastTransitionTime: since ?? formatInstant(now), reason, message }
  })
}

/** Empties deleted namespaces, pods first, and removes their finalizer. Reads and deletes every namespaced kind. */
export function namespaceController(world: PhysicsWorld): Part {
  const { storage, clock } = world
  const namespaces = servedKind(storage, "v1", "Namespace")

  function empty(kind: ServedKind, namespace: string): Remains {
    for (const { metadata } of storage.list(kind, { namespace }).items)
      tolerateAbsence(() => storage.delete(kind, metadata, { propagationPolicy: "Background" }))
    return { kind, objects: storage.list(kind, { namespace }).items }
  }

  function writeConditions(namespace: Obj, remains: readonly Remains[]): Obj {
    const conditions = conditionsOf(namespace.status?.conditions ?? [], remains, clock.now())
    if (same(conditions, namespace.status?.conditions)) return namespace
    const status = { ...namespace.status, phase: "Terminating", conditions }
    return storage.update(namespaces, { ...namespace, status }, { ...manager, subresource: "status" })
  }

  /** Half of the estimated time for the rest, and a second. */
  const later = (seconds: number) => (Math.floor(seconds / 2) + 1) * 1000

  return loop(world, {
    name: "namespace-controller",
    watches: [
      {
        apiVersion: "v1",
        kind: "Namespace",
        delayMs: graceMs,
        keys: ({ object }) => (object.metadata.deletionTimestamp ? [keyOf(object)] : []),
      },
    ],
    reconcile(key) {
      const namespace = storage.find(namespaces, nameOf(key))
      const { name = "", deletionTimestamp } = namespace?.metadata ?? {}
      if (!namespace || !deletionTimestamp || !namespace.spec?.finalizers?.includes("kubernetes")) return undefined

      const kinds = new Map<string, ServedKind>()
      for (const kind of storage.kinds())
        if (kind.namespaced && kind.verbs.includes("delete") && !kinds.has(kind.storage)) kinds.set(kind.storage, kind)
      const podKind = servedKind(storage, "v1", "Pod")
      kinds.delete(podKind.storage)

      const pods = empty(podKind, name)
      if (pods.objects.length > 0) {
        writeConditions(namespace, [])
        const graces = pods.objects
          .filter(pod => !isTerminal(pod))
          .map(pod => pod.spec.terminationGracePeriodSeconds ?? 0)
        const elapsed = (clock.now() - (parseInstant(deletionTimestamp) ?? clock.now())) / 1000
        const longest = Math.max(0, ...graces)
        return later(elapsed < longest ? longest : finalizerSeconds)
      }
      const remains = [...kinds.values()].map(kind => empty(kind, name)).filter(({ objects }) => objects.length > 0)
      const current = writeConditions(namespace, remains)
      if (remains.length > 0) return later(finalizerSeconds)
      const finalizers = current.spec.finalizers.filter((each: string) => each !== "kubernetes")
      const spec: Json = { ...current.spec, finalizers }
      storage.update(namespaces, { ...current, spec }, { ...manager, subresource: "finalize" })
      return undefined
    },
  })
}

/** Gives every namespace its default ServiceAccount. Reads Namespaces; writes ServiceAccounts. */
export function serviceAccountController(world: PhysicsWorld): Part {
  const account = () => ({ apiVersion: "v1", kind: "ServiceAccount", metadata: { name: "default" } })
  return presentInEveryNamespace(world, "serviceaccount-controller", account)
}

/** Gives every namespace the certificate of the API server. Reads Namespaces; writes ConfigMaps. */
export function rootCertificatePublisher(world: PhysicsWorld, certificate = ""): Part {
  const description =
    "Contains a CA bundle that can be used to verify the kube-apiserver when using internal endpoints such as the internal service IP or kubernetes.default.svc. No other usage is guaranteed across distributions of Kubernetes clusters."
  return presentInEveryNamespace(world, "root-ca-certificate-publisher-controller", () => ({
    apiVersion: "v1",
    kind: "ConfigMap",
    metadata: { name: "kube-root-ca.crt", annotations: { "kubernetes.io/description": description } },
    data: { "ca.crt": certificate },
  }))
}

/** Restores an object in every namespace where it is missing or different. */
function presentInEveryNamespace(world: PhysicsWorld, name: string, make: () => Json): Part {
  const { storage } = world
  const namespaces = servedKind(storage, "v1", "Namespace")
  const wanted = make()
  const kind = servedKind(storage, wanted.apiVersion, wanted.kind)
  return loop(world, {
    name,
    watches: [
      { apiVersion: "v1", kind: "Namespace", keys: ({ object }) => [keyOf(object)] },
      {
        apiVersion: wanted.apiVersion,
        kind: wanted.kind,
        keys: ({ object }) => (object.metadata.name === wanted.metadata.name ? [object.metadata.namespace!] : []),
      },
    ],
    reconcile(key) {
      const namespace = storage.find(namespaces, nameOf(key))
      if (!namespace || namespace.metadata.deletionTimestamp) return undefined
      const existing = storage.find(kind, { namespace: key, name: wanted.metadata.name })
      try {
        if (!existing) storage.create(kind, { ...wanted, metadata: { ...wanted.metadata, namespace: key } }, manager)
        else if (wanted.data && !same(existing.data, wanted.data) && !existing.metadata.deletionTimestamp)
          storage.update(kind, { ...existing, data: wanted.data }, manager)
      } catch (error) {
        if (!(error instanceof StatusError) || error.reason !== "AlreadyExists") throw error
      }
      return undefined
    },
  })
}
