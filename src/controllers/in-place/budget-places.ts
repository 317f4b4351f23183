import { BudgetCover, type Room } from "#core/in-place/cover.ts"
import type { PodFacts } from "#core/in-place/pod.ts"
import type { TakenPods } from "#core/in-place/taken.ts"
import type { Clock } from "#runtime/clock.ts"
import { keyOf, nameOf } from "#runtime/resource.ts"
import type { Neighbourhood } from "./world.ts"

/** What the budgets of namespaces have left, and the places that workloads of one kind take in them. */
export type BudgetPlaces = {
  open(namespace: string, near: Pick<Neighbourhood, "pods" | "budgets">): void
  close(namespace: string): void
  /** Budgets over pods with these labels, and what they have left beside everything that is taken. */
  roomFor(namespace: string, labels: Readonly<Record<string, string>>): readonly Room[]
  /** Takes a place in every budget that covers the pod. Returns the budget that has none left, if there is one. */
  take(key: string, pod: PodFacts): string | undefined
  free(key: string, pod: PodFacts): void
  /** These pods of the workload have a place, and no others. */
  keep(key: string, pods: readonly PodFacts[]): void
}

type Options = {
  readonly kind: string
  readonly taken: TakenPods
  readonly clock: Clock
  /** A budget may have room again. */
  readonly onRoom: (namespace: string, budget: string) => void
}

type Open = { readonly cover: BudgetCover; podOf(key: string): PodFacts | undefined }

export function budgetPlaces({ kind, taken, clock, onRoom }: Options): BudgetPlaces {
  const opened = new Map<string, Open>()
  const ownerOf = (key: string) => `${kind}/${key}`
  const placeOf = (pod: PodFacts) => ({ key: keyOf(pod), uid: pod.uid })

  const report = (namespace: string, { cover, podOf }: Open, budgets: readonly string[]) => {
    for (const name of budgets) if (cover.hasRoom(name, podOf, clock.now())) onRoom(namespace, name)
  }

  taken.subscribe(({ key }) => {
    const { namespace = "" } = nameOf(key)
    const open = opened.get(namespace)
    const pod = open?.podOf(key)
    if (open && pod) report(namespace, open, open.cover.takenChanged(key, pod))
  })

  const roomFor: BudgetPlaces["roomFor"] = (namespace, labels) => {
    const open = opened.get(namespace)
    return open ? open.cover.over(labels, open.podOf, clock.now()) : []
  }

  return {
    open(namespace, { pods, budgets }) {
      const cover = new BudgetCover(uid => taken.has(uid))
      const open: Open = { cover, podOf: key => pods.get(key)?.facts }
      opened.set(namespace, open)
      pods.subscribe(({ key, before, after }) =>
        report(namespace, open, cover.podChanged(key, before?.facts, after?.facts)),
      )
      budgets.subscribe(({ before, after }) => {
        const { name } = (after ?? before)!
        cover.budgetChanged(name, after, () => [...pods.entries()].map(([key, { facts }]) => [key, facts]))
        report(namespace, open, [name])
      })
    },
    close: namespace => opened.delete(namespace),
    roomFor,
    take(key, pod) {
      const full = roomFor(pod.namespace, pod.labels).find(({ allowed }) => allowed <= 0)
      if (!full) taken.take(ownerOf(key), placeOf(pod))
      return full?.budget
    },
    free: (key, pod) => taken.free(ownerOf(key), pod),
    keep: (key, pods) => taken.keep(ownerOf(key), pods.map(placeOf)),
  }
}
