import { clip, nameSome } from "#lib/text.ts"
import { everyOrdinal } from "../in-place/names.ts"
import { holdFields, isHeldNow, isUnderWay, readInPlace } from "../in-place/own-hold.ts"
import { fieldOf, imageText, isObserved, type TargetObject, textOf, wholeNumber } from "./object-facts.ts"
import type { KindOfTarget } from "./target-reader.ts"

/** Deployment, StatefulSet and DaemonSet, by the name of a container. The contract's fields are derived from theirs. */
export function workloadTarget(kind: Workload, container: string): KindOfTarget {
  const { isRolledOut, podsWanted, podsReady } = workloads[kind]
  // A held workload is under way, whatever the counts say: they are complete before it is released, and those of a
  // StatefulSet from the beginning, since its hold is a partition. Between two updates the counts say it, beside the stop.
  const isUpToDate = (object: TargetObject) =>
    isObserved(object) && !isUnderWay(object) && isRolledOut(withoutStop(object))
  return {
    patchType: "strategic",

    read(object) {
      const parts = partsOf(object)
      const pod = fieldOf(fieldOf(parts.spec, "template"), "spec")
      const replicas = podsWanted(parts)
      const minReadyMs = count(parts.spec, "minReadySeconds") * 1000
      for (const list of [containers, initContainers]) {
        const all = fieldOf(pod, list)
        const found = Array.isArray(all) ? all.find(each => fieldOf(each, "name") === container) : undefined
        if (found)
          return {
            images: [imageText(fieldOf(found, "image"))],
            replicas,
            minReadyMs,
            isInitContainer: list === initContainers,
          }
      }
      return { images: [], problem: `has no container ${container}${instead(pod)}`, replicas, minReadyMs }
    },

    readInPlace: (object, image) => readInPlace(kind, object, { container, image }),

    // Both are annotations here, which count on every kind.
    isUnmanaged: () => false,
    haltsOnFailure: () => false,
    isUpToDate,
    // These kinds are judged by counts, which have no time.
    unwellSince: () => undefined,
    wellSince: () => undefined,
    // The condition Available is no help: with maxUnavailable 100% it is True before the first pod. A workload without
    // any pod to wait for counts as deployed when it is up to date.
    isDeployed: object => podsReady(partsOf(object)) > 0 || isUpToDate(object),
    remembersDeployed: false,

    ownedFields({ isInitContainer }) {
      const key = `k:${JSON.stringify({ name: container })}`
      return [["f:spec", "f:template", "f:spec", `f:${listOf(isInitContainer)}`, key, "f:image"]]
    },

    imageFields({ isInitContainer }, to) {
      const image = typeof to === "string" ? to : fieldOf(to, container)
      if (typeof image !== "string") return {}
      return { spec: { template: { spec: { [listOf(isInitContainer)]: [{ name: container, image }] } } } }
    },

    holdFields: ({ inPlace }, strategy) => inPlace && holdFields(kind, inPlace, strategy),
  }
}

export type Workload = "Deployment" | "StatefulSet" | "DaemonSet"
export const isWorkload = (kind: string): kind is Workload => Object.hasOwn(workloads, kind)

type Parts = { spec: unknown; status: unknown }

const workloads: Record<
  Workload,
  { isRolledOut(parts: Parts): boolean; podsWanted(parts: Parts): number; podsReady(parts: Parts): number }
> = {
  /**
   * With `spec.paused`, its controller makes no pods from the new template, so `updatedReplicas` stays behind. It is
   * not up to date until it is resumed, and otherwise fails at its deadline. By then the image is in its spec, and a
   * resumed Deployment runs it.
   */
  Deployment: {
    podsWanted: replicasOf,
    podsReady: ({ status }) => Math.max(count(status, "availableReplicas"), count(status, "readyReplicas")),
    isRolledOut: parts => allReplicas(parts, ["replicas", "updatedReplicas", "availableReplicas"]),
  },

  /**
   * As `kubectl rollout status`. A partition is its owner's own canary: the pods below it are held back on purpose, and
   * it is up to date when all others are new. With OnDelete only its owner replaces pods: it is up to date when all are
   * replaced, and otherwise fails at its deadline; its currentRevision never moves.
   */
  StatefulSet: {
    podsWanted: replicasOf,
    podsReady: ({ status }) => Math.max(count(status, "availableReplicas"), count(status, "readyReplicas")),
    isRolledOut(parts) {
      const { spec, status } = parts
      if (!allReplicas(parts, ["replicas", "availableReplicas"])) return false
      const strategy = fieldOf(spec, "updateStrategy")
      const partition = count(fieldOf(strategy, "rollingUpdate"), "partition")
      if (count(status, "updatedReplicas") < replicasOf(parts) - partition) return false
      if (partition > 0 || fieldOf(strategy, "type") === "OnDelete") return true
      return fieldOf(status, "currentRevision") === fieldOf(status, "updateRevision")
    },
  },

  /** With OnDelete as a StatefulSet: up to date when its owner has replaced the pods. */
  DaemonSet: {
    podsWanted: ({ status }) => count(status, "desiredNumberScheduled"),
    podsReady: ({ status }) => Math.max(count(status, "numberAvailable"), count(status, "numberReady")),
    isRolledOut({ status }) {
      const wanted = count(status, "desiredNumberScheduled")
      return count(status, "updatedNumberScheduled") === wanted && count(status, "numberAvailable") === wanted
    },
  },
}

/** The containers there are: most often the name is misspelt. */
function instead(pod: unknown): string {
  const names = [containers, initContainers].flatMap(list => {
    const all = fieldOf(pod, list)
    return Array.isArray(all) ? all.map(each => textOf(fieldOf(each, "name"))).filter(Boolean) : []
  })
  return names.length === 0 ? "" : `, only ${clip(nameSome(names.slice(0, namesMost), names.length), 128)}`
}
const namesMost = 4

const containers = "containers"
const initContainers = "initContainers"
const listOf = (isInitContainer: boolean | undefined) => (isInitContainer ? initContainers : containers)

const partsOf = (object: TargetObject): Parts => ({ spec: fieldOf(object, "spec"), status: fieldOf(object, "status") })

/** A standing hold is no wish of the owner for some of the pods only. */
function withoutStop(object: TargetObject): Parts {
  const parts = partsOf(object)
  const isPartitioned = fieldOf(fieldOf(fieldOf(parts.spec, "updateStrategy"), "rollingUpdate"), "partition")
  if (isPartitioned !== everyOrdinal || !isHeldNow(object)) return parts
  return { ...parts, spec: { ...(parts.spec as object), updateStrategy: undefined } }
}

/** The server leaves zeros out. */
const count = (value: unknown, name: string) => wholeNumber(fieldOf(value, name)) ?? 0

function replicasOf({ spec }: Parts): number {
  return wholeNumber(fieldOf(spec, "replicas")) ?? 1
}

function allReplicas(parts: Parts, counts: readonly string[]): boolean {
  return counts.every(name => count(parts.status, name) === replicasOf(parts))
}
