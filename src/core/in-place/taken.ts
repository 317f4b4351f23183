type Pod = { readonly key: string; readonly uid: string }

/**
 * Pods that are disturbed or about to be, of every workload that this process updates. One PodDisruptionBudget may
 * cover pods of several workloads and kinds, and a dry-run eviction reserves nothing: this is the reservation. It is
 * no memory that must last: what a process that has ended had begun is read from its pods.
 */
export class TakenPods {
  readonly #uids = new Set<string>()
  /** By workload, the key of each pod by its uid. */
  readonly #places = new Map<string, Map<string, string>>()
  readonly #listeners: ((pod: Pod) => void)[] = []

  has(uid: string): boolean {
    return this.#uids.has(uid)
  }

  take(workload: string, pod: Pod): void {
    if (this.#uids.has(pod.uid)) return
    this.#uids.add(pod.uid)
    const places = this.#places.get(workload) ?? new Map()
    this.#places.set(workload, places.set(pod.uid, pod.key))
    this.#tell(pod)
  }

  free(workload: string, { uid }: Pick<Pod, "uid">): void {
    const places = this.#places.get(workload)
    const key = places?.get(uid)
    if (!places || key === undefined) return
    places.delete(uid)
    if (places.size === 0) this.#places.delete(workload)
    this.#uids.delete(uid)
    this.#tell({ key, uid })
  }

  /** These pods of the workload and no others: the rest is proven, gone, or was not disturbed after all. */
  keep(workload: string, pods: readonly Pod[]): void {
    const left = new Set(pods.map(({ uid }) => uid))
    for (const uid of [...(this.#places.get(workload)?.keys() ?? [])]) if (!left.has(uid)) this.free(workload, { uid })
    for (const pod of pods) this.take(workload, pod)
  }

  /** Calls back with each pod that is taken or freed, once that is so. */
  subscribe(listener: (pod: Pod) => void): void {
    this.#listeners.push(listener)
  }

  #tell(pod: Pod): void {
    for (const listener of this.#listeners) listener(pod)
  }
}
