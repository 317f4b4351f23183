import { readNodeState } from "#controllers/in-place/facts.ts"
import { noteOf } from "#core/in-place/operation.ts"
import type { PodFacts } from "#core/in-place/pod.ts"
import { type Evidence, standingOf, type Target } from "#core/in-place/standing.ts"
import { annotationsOf, changeOf, imagesOf, labelsOf, untouched } from "#core/in-place/template.ts"
import { splitImage } from "#core/pulls/image-name.ts"
import { type NodeImageFacts, readNodeImage } from "#core/pulls/node-facts.ts"
import type { Instant } from "#lib/instant.ts"
import type { KubeObject } from "#runtime/resource.ts"
import {
  podsOf,
  type Revision,
  readWorkload,
  revisionBefore,
  revisionsOf,
  type Sight,
  type WorkloadFacts,
} from "./facts.ts"

export type PodState =
  | "Updated"
  | "Stale"
  /** Its readiness gate is False, so that no traffic reaches it any more. */
  | "Drained"
  | "Restarting"
  /** New, by a rolling update, and not ready yet. */
  | "Starting"
  | "Failed"
  /** It failed, and went back. */
  | "Reverted"

/** How one pod stands in the last change of its workload. */
export type PodStanding = {
  name: string
  node: string
  isReady: boolean
  state: PodState
  /** Why it failed, or what it waits for. */
  why?: string
  images: Readonly<Record<string, string>>
  /** When it was last changed in place, and by which operation. */
  changedAt?: Instant
  operation?: string
}

/** The pods of a workload, by name. */
export function podStandings(sight: Sight): PodStanding[] {
  const workload = readWorkload(sight.workload)
  const revisions = revisionsOf(sight)
  const isInPlace = workload.hold && workload.isHolding && !isNotInPlace(workload, revisions)
  const judge = isInPlace ? inPlaceJudge(sight, revisions) : rolloutJudge(revisions)
  return podsOf(sight).map(pod => ({
    name: pod.name,
    node: pod.node,
    isReady: pod.isReady,
    ...judge(pod),
    images: Object.fromEntries([...pod.containers].map(([name, { image }]) => [name, image])),
    ...(pod.mark && { changedAt: pod.mark.at, operation: pod.mark.operation }),
  }))
}

type Judge = (pod: PodFacts) => { state: PodState; why?: string }

/** No pod can get the change: each is what its revision is. */
function isNotInPlace({ template }: WorkloadFacts, revisions: readonly Revision[]): boolean {
  const before = revisionBefore(revisions)
  return before !== undefined && changeOf(before.template, template).is === "NotInPlace"
}

/** With the function by which the controller decides it. */
function inPlaceJudge(sight: Sight, revisions: readonly Revision[]): Judge {
  const target = targetOf(sight, revisions)
  const { now } = sight
  const { digestOn } = agentsIn(sight)
  const nodes = new Map((sight.nodes ?? []).map(node => [node.metadata.name, readNodeState(node)]))
  const nodeOf = (name: string) => nodes.get(name)
  return pod => {
    const upSince = () => (pod.isReady ? (pod.readyChangedAt ?? now) : now)
    const evidence: Evidence = { digestOn, upSince, drainedSince: () => now, nodeOf, now }
    const found = standingOf(pod, target, evidence)
    if (found.is === "Restarting" && found.isLost)
      return { state: found.is, why: `node ${pod.node} is not ready, and reports nothing` }
    if (found.is === "Stale" && pod.gate?.isDrained) return { state: "Drained" }
    if (found.is === "Failed") return { state: found.is, why: `${found.reason}: ${found.message}` }
    if (found.is === "Reverted") return { state: found.is, why: found.reason }
    return { state: found.is }
  }
}

/** What the pods of a held workload are to become. */
export function targetOf({ workload: object }: Sight, revisions: readonly Revision[]): Target {
  const workload = readWorkload(object)
  const { template, minReadySeconds, deadlineSeconds } = workload
  const note = noteOf(workload)
  const before = revisionBefore(revisions)
  const change = before ? changeOf(before.template, template) : undefined
  return {
    operation: note?.operation ?? "",
    images: imagesOf(template),
    labels: labelsOf(template),
    annotations: annotationsOf(template),
    touched: note?.touched ?? (change?.is === "InPlace" ? change : untouched),
    minReadyMs: minReadySeconds * 1000,
    deadlineMs: deadlineSeconds * 1000,
  }
}

/** A rolling update makes other pods: they are told apart by the revision that they come from. */
function rolloutJudge(revisions: readonly Revision[]): Judge {
  const present = new Set(revisions.flatMap(({ isPresent, pods }) => (isPresent ? pods : [])))
  return ({ name, isReady }) => ({ state: !present.has(name) ? "Stale" : isReady ? "Updated" : "Starting" })
}

export type ImageOnNode =
  | { readonly is: "Present"; readonly digest: string }
  /** "" where it was not asked for yet. */
  | { readonly is: "Missing"; readonly why: string }
  | { readonly is: "NoAgent" }

type ByNode = ReadonlyMap<string, NodeImageFacts>

/** All workloads of a look are judged by the same list, which is read once. */
const known = new WeakMap<object, ByNode>()

function byNodeIn(nodeImages: readonly KubeObject[]): ByNode {
  const found = known.get(nodeImages)
  if (found) return found
  const byNode = new Map(nodeImages.map(each => [each.metadata.name, readNodeImage(each)]))
  known.set(nodeImages, byNode)
  return byNode
}

/** What the agents of nodes have reported. */
export function agentsIn({ nodeImages = [] }: Pick<Sight, "nodeImages">) {
  const byNode = byNodeIn(nodeImages)
  const imageOn = (node: string, image: string): ImageOnNode => {
    const facts = byNode.get(node)
    if (!facts || facts.publicKey === "") return { is: "NoAgent" }
    const wanted = splitImage(image)
    const entry = facts.entries.find(({ name, tag }) => name === wanted?.name && tag === wanted.tag)
    if (entry?.phase === "Succeeded") return { is: "Present", digest: entry.digest }
    return { is: "Missing", why: entry ? entry.reason || entry.phase || "asked" : "" }
  }
  const digestOn = (node: string, image: string) => {
    const found = imageOn(node, image)
    return found.is === "Present" && found.digest !== "" ? found.digest : undefined
  }
  return { imageOn, digestOn }
}
