import type { Instant } from "#lib/instant.ts"
import { type LabelSelector, selects } from "#lib/label-selector.ts"
import type { PodFacts } from "./pod.ts"
import { awaitsAgent, awaitsRestart } from "./standing.ts"

/** A PodDisruptionBudget, and what its controller has made of it. */
export type Budget = {
  readonly name: string
  readonly selector: LabelSelector | undefined
  /** How many more pods it lets go. */
  readonly allowed: number
  /** How many of its pods have to be healthy. */
  readonly desired: number
  /** The numbers are about the present budget. */
  readonly isCurrent: boolean
}

/** How many pods a budget lets go now. */
export type Room = { readonly budget: string; readonly allowed: number }

type Covered = {
  budget: Budget
  /** Of its pods, those that report to be ready. */
  ready: number
  /** Keys of those among them that are disturbed, or may be. */
  readonly suspects: Set<string>
}

type Pods = Iterable<readonly [key: string, pod: PodFacts | undefined]>
type PodOf = (key: string) => PodFacts | undefined

/**
 * The budgets of a namespace and how many of their pods are healthy, updated with each event. The status of a budget
 * falls only after a disturbed pod has been reported as not ready, and does not say which pods it counts. So healthy
 * pods are counted here, each once: ready, not taken, and not about to restart.
 */
export class BudgetCover {
  readonly #covered = new Map<string, Covered>()
  readonly #isTaken: (uid: string) => boolean
  /** The budgets over pods with these labels. Pods of a workload share them, so few selectors are asked at an event. */
  #over = new WeakMap<PodFacts["labels"], readonly Covered[]>()

  constructor(isTaken: (uid: string) => boolean) {
    this.#isTaken = isTaken
  }

  /** `pods` is read only where the budget covers others than before. */
  budgetChanged(name: string, budget: Budget | undefined, pods: () => Pods): void {
    const before = this.#covered.get(name)
    if (before && budget && isSame(before.budget.selector, budget.selector)) {
      before.budget = budget
      return
    }
    this.#over = new WeakMap()
    this.#covered.delete(name)
    if (!budget) return
    const covered: Covered = { budget, ready: 0, suspects: new Set() }
    this.#covered.set(name, covered)
    for (const [key, pod] of pods()) if (pod && selects(budget.selector, pod.labels)) this.#add(covered, key, pod)
  }

  /** Returns the budgets that cover the pod, before or after. */
  podChanged(key: string, before: PodFacts | undefined, after: PodFacts | undefined): string[] {
    const was = before ? this.#covering(before.labels) : []
    const is = after ? this.#covering(after.labels) : []
    for (const covered of was) {
      if (before?.isReady) covered.ready--
      covered.suspects.delete(key)
    }
    if (after) for (const covered of is) this.#add(covered, key, after)
    return [...new Set([...was, ...is])].map(({ budget }) => budget.name)
  }

  /** A pod was taken or freed. Returns the budgets that cover it. */
  takenChanged(key: string, pod: PodFacts): string[] {
    return this.podChanged(key, pod, pod)
  }

  /** Every budget that covers a pod with these labels, with what it has left. */
  over(labels: Readonly<Record<string, string>>, podOf: PodOf, now: Instant): Room[] {
    return this.#covering(labels).map(covered => ({
      budget: covered.budget.name,
      allowed: this.#roomOf(covered, podOf, now),
    }))
  }

  hasRoom(name: string, podOf: PodOf, now: Instant): boolean {
    const covered = this.#covered.get(name)
    return !covered || this.#roomOf(covered, podOf, now) > 0
  }

  #covering(labels: PodFacts["labels"]): readonly Covered[] {
    const known = this.#over.get(labels)
    if (known) return known
    const found = [...this.#covered.values()].filter(({ budget }) => selects(budget.selector, labels))
    this.#over.set(labels, found)
    return found
  }

  #roomOf({ budget, ready, suspects }: Covered, podOf: PodOf, now: Instant): number {
    if (!budget.isCurrent) return 0
    let healthy = ready
    for (const key of suspects) {
      const pod = podOf(key)
      if (pod && (this.#isTaken(pod.uid) || isDisturbed(pod, now))) healthy--
    }
    return Math.max(0, Math.min(budget.allowed, healthy - budget.desired))
  }

  #add(covered: Covered, key: string, pod: PodFacts): void {
    if (!pod.isReady) return
    covered.ready++
    if (this.#isTaken(pod.uid) || isDisturbed(pod, Number.NEGATIVE_INFINITY)) covered.suspects.add(key)
  }
}

/** Drained, or changed and not yet restarted: it is down, whatever it reports. */
export const isDisturbed = (pod: PodFacts, now: Instant): boolean =>
  pod.gate?.isDrained === true || pod.isInDoubt === true || awaitsRestart(pod, now) || awaitsAgent(pod, now)

const isSame = (a: LabelSelector | undefined, b: LabelSelector | undefined) => JSON.stringify(a) === JSON.stringify(b)
