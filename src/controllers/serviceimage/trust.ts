import { maxInflight } from "#api/v1alpha1/serviceimage/index.ts"
import { nameOf } from "#runtime/resource.ts"

/** How the last write to a namespace went, where there was one. */
export type Trust = Map<string, "Proven" | "Suspect">

/** Cluster-scoped objects have no namespace that could fail as a whole. */
export const trustOf = (trust: ReadonlyMap<string, "Proven" | "Suspect">, namespace: string) =>
  namespace === "" ? "Proven" : trust.get(namespace)

/** Shares of what may be in flight: for one namespace, and for all in which no write has succeeded yet. */
const mostOfOne = maxInflight / 4
const mostInAll = maxInflight / 2

/**
 * Shares out what may be in flight. A namespace whose last write failed gets one. A namespace that is not known yet
 * gets a quarter at most, and all of these together half, not counting the first write of each: a tenant with a broken
 * webhook must leave room for the others before its first write is answered. The rest is for namespaces where writes
 * succeed.
 */
export class Shares {
  readonly #trust: ReadonlyMap<string, "Proven" | "Suspect">
  readonly #inFlight = new Map<string, number>()
  #extra = 0

  /** `taken`: the keys of objects that have a place. */
  constructor(trust: ReadonlyMap<string, "Proven" | "Suspect">, taken: Iterable<string>) {
    this.#trust = trust
    for (const key of taken) this.take(nameOf(key).namespace ?? "")
  }

  /** Whether there is a place for one more object of the namespace. */
  hasRoom(namespace: string): boolean {
    const standing = trustOf(this.#trust, namespace)
    if (standing === "Proven") return true
    const known = this.#inFlight.get(namespace) ?? 0
    return known === 0 || (standing !== "Suspect" && known < mostOfOne && this.#extra < mostInAll)
  }

  take(namespace: string): void {
    if (trustOf(this.#trust, namespace) === "Proven") return
    const known = this.#inFlight.get(namespace) ?? 0
    this.#inFlight.set(namespace, known + 1)
    if (known > 0) this.#extra++
  }
}
