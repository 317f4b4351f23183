import { Interner } from "#lib/interner.ts"
import { type LabelSelector, selects } from "#lib/label-selector.ts"

/** A pod that runs on a node, or has run there and is not done. */
export type PodPlace = {
  readonly resourceVersion: string
  readonly namespace: string
  /** "" where it has none, or is done. */
  readonly node: string
  readonly labels: Readonly<Record<string, string>>
}

const shared = new Interner<Readonly<Record<string, string>>>(50_000)

export function readPodPlace(object: { metadata: object }): PodPlace {
  const {
    resourceVersion = "",
    namespace = "",
    labels = {},
  } = object.metadata as {
    resourceVersion?: string
    namespace?: string
    labels?: Record<string, string>
  }
  const { spec, status } = object as { spec?: { nodeName?: string }; status?: { phase?: string } }
  const isDone = status?.phase === "Succeeded" || status?.phase === "Failed"
  return {
    resourceVersion,
    namespace,
    node: isDone ? "" : (spec?.nodeName ?? ""),
    labels: shared.share(JSON.stringify(labels), labels),
  }
}

type Follower = { selector: LabelSelector; counts: Map<string, number>; onChange: (node: string) => void }

/**
 * On which nodes the pods run that a selector of their namespace selects. An event of a pod costs as much as its
 * namespace has selectors.
 */
export class PodPlaces {
  readonly #pods = new Map<string, Map<string, PodPlace>>()
  readonly #followers = new Map<string, Map<string, Follower>>()

  set(key: string, before: PodPlace | undefined, after: PodPlace | undefined): void {
    const namespace = (after ?? before)!.namespace
    const pods = this.#pods.get(namespace) ?? new Map<string, PodPlace>()
    if (after) pods.set(key, after)
    else pods.delete(key)
    if (pods.size > 0) this.#pods.set(namespace, pods)
    else this.#pods.delete(namespace)
    if (before && after && before.node === after.node && before.labels === after.labels) return
    for (const follower of this.#followers.get(namespace)?.values() ?? []) {
      if (before) count(follower, before, -1)
      if (after) count(follower, after, 1)
    }
  }

  /** Calls back for each node that comes to have such a pod, and for each that has none any more. */
  follow(id: string, namespace: string, selector: LabelSelector, onChange: Follower["onChange"]): void {
    const follower = { selector, counts: new Map<string, number>(), onChange }
    const followers = this.#followers.get(namespace) ?? new Map<string, Follower>()
    this.#followers.set(namespace, followers.set(id, follower))
    for (const pod of this.#pods.get(namespace)?.values() ?? []) count(follower, pod, 1)
  }

  /** Whether such a pod runs on the node. */
  has(id: string, namespace: string, node: string): boolean {
    return this.#followers.get(namespace)?.get(id)?.counts.has(node) ?? false
  }

  unfollow(id: string, namespace: string): void {
    const followers = this.#followers.get(namespace)
    followers?.delete(id)
    if (followers?.size === 0) this.#followers.delete(namespace)
  }
}

function count({ selector, counts, onChange }: Follower, { node, labels }: PodPlace, by: 1 | -1): void {
  if (node === "" || !selects(selector, labels)) return
  const before = counts.get(node) ?? 0
  const after = before + by
  if (after === 0) counts.delete(node)
  else counts.set(node, after)
  if (before === 0 || after === 0) onChange(node)
}
