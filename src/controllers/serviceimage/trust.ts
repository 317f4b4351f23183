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
export function shareOut(trust: ReadonlyMap<string, "Proven" | "Suspect">, taken: Iterable<string>) {
  const inFlight = new Map<string, number>()
  let extra = 0
  const count = (namespace: string) => {
    const known = inFlight.get(namespace) ?? 0
    inFlight.set(namespace, known + 1)
    if (known > 0) extra++
  }
  for (const key of taken) {
    const { namespace = "" } = nameOf(key)
    if (trustOf(trust, namespace) !== "Proven") count(namespace)
  }
  return {
    /** Takes a place for an object of the namespace, if there is one. */
    take(namespace: string): boolean {
      const standing = trustOf(trust, namespace)
      if (standing === "Proven") return true
      const known = inFlight.get(namespace) ?? 0
      const hasRoom = known === 0 || (standing !== "Suspect" && known < mostOfOne && extra < mostInAll)
      if (hasRoom) count(namespace)
      return hasRoom
    },
  }
}
