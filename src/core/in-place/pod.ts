import { readinessGate } from "#api/v1alpha1/readiness-gate.ts"
import { decisionAnnotation, type ImageRecord, parseFailover } from "#core/image/record.ts"
import { mirrorMark } from "#core/pods/left-alone.ts"
import { type Instant, parseInstant } from "#lib/instant.ts"
import { type PodMark, parseMark } from "./marks.ts"
import { gateReason, inPlaceAnnotation } from "./names.ts"
import { listOf, recordOf } from "./template.ts"

/** What an update in place needs to know of a pod. */
export type PodFacts = {
  readonly namespace: string
  readonly name: string
  readonly uid: string
  readonly resourceVersion: string
  /** The uid of the object that controls it. */
  readonly owner: string
  readonly ownerName: string
  /** "" until it is scheduled. */
  readonly node: string
  readonly isReady: boolean
  /** When it became ready, or stopped being so. */
  readonly readyChangedAt: Instant | undefined
  readonly labels: Readonly<Record<string, string>>
  readonly annotations: Readonly<Record<string, string>>
  readonly containers: ReadonlyMap<string, ContainerFacts>
  /** Those of the template, and those that its ServiceAccount has added. */
  readonly pullSecrets: readonly string[]
  readonly mark: PodMark | undefined
  /** The last failover of a pull: which image each container stands for. */
  readonly failover?: ImageRecord | undefined
  /** Undefined where the pod does not list our readiness gate. */
  readonly gate: { readonly isDrained: boolean } | undefined
  /** A write that disturbs it got no answer, and the pod has not been seen since. */
  readonly isInDoubt?: true
}

/** A pod that is being deleted. On a node that is lost it stays so. */
export type EndingPod = Pick<PodFacts, "name" | "owner" | "ownerName" | "node" | "labels">

export type ContainerFacts = {
  readonly image: string
  readonly isInit: boolean
  /** "" until it was started. */
  readonly id: string
  /** The digest of the image that it runs, or "". */
  readonly digest: string
  readonly restarts: number
  readonly isRunning: boolean
  readonly isReady: boolean
  /** Why the kubelet does not start it: `CrashLoopBackOff`, `ImagePullBackOff`, … or "". */
  readonly waiting: string
}

type Json = Record<string, unknown>

/** Reads a pod as the server sends it. Undefined for one that is ending, has ended, or is not the API server's. */
export function readPod(object: { metadata: object }): PodFacts | undefined {
  const { metadata: meta, spec = {}, status = {} } = object as unknown as Record<string, Json>
  const metadata = meta!
  const annotations = recordOf(metadata.annotations) as Record<string, string>
  if (metadata.deletionTimestamp !== undefined || hasEnded(status)) return undefined
  if (annotations[mirrorMark] !== undefined) return undefined
  const ready = conditionOf(status, "Ready")
  const owner = listOf(metadata.ownerReferences).find(({ controller }) => controller === true)
  return {
    namespace: String(metadata.namespace ?? ""),
    name: String(metadata.name),
    uid: String(metadata.uid ?? ""),
    resourceVersion: String(metadata.resourceVersion ?? ""),
    owner: String(owner?.uid ?? ""),
    ownerName: String(owner?.name ?? ""),
    node: String(spec.nodeName ?? ""),
    isReady: ready?.status === "True",
    readyChangedAt: parseInstant(ready?.lastTransitionTime),
    labels: recordOf(metadata.labels) as Record<string, string>,
    annotations,
    containers: new Map([
      ...containersOf(spec.initContainers, status.initContainerStatuses, true),
      ...containersOf(spec.containers, status.containerStatuses, false),
    ]),
    pullSecrets: listOf(spec.imagePullSecrets).map(({ name }) => String(name)),
    mark: parseMark(annotations[inPlaceAnnotation]),
    failover: parseFailover(annotations[decisionAnnotation]),
    gate: gateOf(spec, status),
  }
}

/** Undefined for a pod that is not being deleted, or has ended. */
export function readEnding(object: { metadata: object }): EndingPod | undefined {
  const { metadata: meta, spec = {}, status = {} } = object as unknown as Record<string, Json>
  const { deletionTimestamp, ownerReferences, name, labels } = meta!
  if (deletionTimestamp === undefined || hasEnded(status)) return undefined
  const owner = listOf(ownerReferences).find(({ controller }) => controller === true)
  return {
    name: String(name),
    owner: String(owner?.uid ?? ""),
    ownerName: String(owner?.name ?? ""),
    node: String(spec.nodeName ?? ""),
    labels: recordOf(labels) as Record<string, string>,
  }
}

const hasEnded = ({ phase }: Json) => phase === "Succeeded" || phase === "Failed"

const containersOf = (specs: unknown, statuses: unknown, isInit: boolean): [string, ContainerFacts][] =>
  listOf(specs).map(({ name, image }) => {
    const status = listOf(statuses).find(each => each.name === name)
    const { running, waiting } = recordOf(status?.state)
    return [
      String(name),
      {
        image: String(image ?? ""),
        isInit,
        id: String(status?.containerID ?? ""),
        digest: /sha256:[0-9a-f]{64}$/.exec(String(status?.imageID ?? ""))?.[0] ?? "",
        restarts: Number(status?.restartCount ?? 0),
        isRunning: running !== undefined,
        isReady: status?.ready === true,
        waiting: String(recordOf(waiting).reason ?? ""),
      },
    ]
  })

function gateOf(spec: Json, status: Json): PodFacts["gate"] {
  if (!listOf(spec.readinessGates).some(({ conditionType }) => conditionType === readinessGate)) return undefined
  const condition = conditionOf(status, readinessGate)
  return { isDrained: condition?.status === "False" && condition.reason === gateReason }
}

const conditionOf = ({ conditions }: Json, type: string) => listOf(conditions).find(each => each.type === type)
