import { isOfUpdate, standsFor } from "#core/pods/one-at-a-time.ts"
import type { Root } from "./claims.ts"
import type { Named } from "./coverage.ts"
import type { Container, Owner, PodFacts, WorkloadFacts } from "./facts.ts"
import type { Workload } from "./group.ts"
import { type WorkloadKind, workloadKinds } from "./resources.ts"

/** The place of a workload: its kind, namespace and name. */
export const refOf = (kind: string, space: string, name: string) => `${kind} ${space}/${name}`

/** Everything about a workload that decides which source looks after it. */
export const gistOf = (facts: WorkloadFacts | undefined) =>
  facts &&
  JSON.stringify([
    ...[facts.uid, facts.labels, facts.containers, facts.owner, facts.isDeleting, facts.isGitOps],
    ...[facts.revision, facts.decision],
  ])

/** The same for a pod that is its own workload. */
export function rootGistOf(pod: PodFacts | undefined): string | undefined {
  if (!pod || pod.owner) return undefined
  const { labels, containers } = podAsRoot(pod)
  return JSON.stringify([pod.uid, labels, containers])
}

export const isRead = ({ group, kind }: Owner) =>
  workloadKinds.some(({ name, resource }) => name === kind && resource.group === group)

/** A pod may name any owner. An owner that the status could not name is not looked after. */
export const isTellable = ({ group, kind, name, uid }: Owner) =>
  /^[a-z0-9.-]{0,253}$/.test(group) &&
  /^[a-z0-9]{1,63}$/.test(kind) &&
  /^[a-z0-9.-]{1,253}$/.test(name) &&
  /^[A-Za-z0-9-]{1,64}$/.test(uid)

export function rootFrom(kind: WorkloadKind, facts: WorkloadFacts): Root {
  const type = { group: kind.resource.group, kind: kind.name }
  const { name, uid, resourceVersion, namespace: space, isGitOps, owner, matchLabels, labels } = facts
  const { containers, decision, revision } = facts
  const workload: Workload = {
    type,
    name,
    namespace: space,
    uid,
    resourceVersion,
    hasTemplate: kind.hasTemplate,
    replacesPods: kind.replacesPods,
    isGitOps,
    isOwned: owner !== undefined,
    hasRevisions: kind.hasRevisions,
    revision,
    isUpdated: facts.isUpdated,
    inPlace: facts.inPlace,
    matchLabels: matchLabels && Object.keys(matchLabels).length <= 8 ? matchLabels : undefined,
  }
  return { type, name, labels, owner, workload, containers, decision }
}

/**
 * The workload of a pod, with the images of the version that the pod has. While a workload is held, its own controller
 * makes pods from the template before, and the update brings each of them to the present one.
 */
export function inVersionOf(pod: PodFacts, set: WorkloadFacts | undefined, root: Root): Root {
  const imageOf = ({ name, image }: Container) => {
    const own = pod.containers?.find(each => each.name === name)
    if (!own || isOfUpdate(pod.updated, own)) return image
    return set?.containers.find(each => each.name === name)?.image ?? standsFor(pod.decision, own)
  }
  return { ...root, containers: root.containers.map(each => ({ ...each, image: imageOf(each) })) }
}

/** A pod without an owner is its own workload, and records what it was before our repair. */
export const podAsRoot = (pod: PodFacts): Root => asRoot(pod, { group: "", kind: "pod" }, pod.name, pod.uid, undefined)

/** For an owner of a kind that we do not read: only its name is known. */
export const strangerAsRoot = (pod: PodFacts, owner: Owner): Root =>
  asRoot(pod, { group: owner.group, kind: owner.kind }, owner.name, owner.uid, owner)

function asRoot(pod: PodFacts, type: Named["type"], name: string, uid: string, owner: Owner | undefined): Root {
  const { resourceVersion, namespace: space, decision, containers = [], labels = {} } = pod
  const fixed = { hasTemplate: false, replacesPods: false, isGitOps: false, isOwned: owner !== undefined }
  return {
    type,
    name,
    labels,
    owner,
    workload: { type, name, namespace: space, uid, resourceVersion, ...fixed },
    containers: containers.map(each => ({ ...each, image: standsFor(decision, each) })),
  }
}
