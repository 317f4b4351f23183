import type { Wiring } from "../controller.ts"
import type { Resource } from "../resource.ts"
import type { CacheOptions, Projected, WatchedCache } from "./cache.ts"

type Listing = Pick<WatchedCache<Projected>, "hasSynced" | "isCurrent" | "current" | "failure" | "close">

/** Caches that are opened and closed together, and are only useful when all of them are current. */
export type CacheGroup = {
  watch<T extends Projected>(resource: Resource, options: CacheOptions<T>): WatchedCache<T>
  /** Every list is complete and shows the last leader's writes. Before, an absent object means nothing. */
  readonly isReady: boolean
  /** Resolves when it is ready; never, if the group is closed before. */
  ready(): Promise<void>
  /** The plurals of the resources that may not be listed. Other trouble passes by itself. */
  readonly forbidden: string[]
  close(): void
}

export function cacheGroup({ watch }: Pick<Wiring, "watch">): CacheGroup {
  let members: { resource: Resource; cache: Listing }[] = []
  return {
    watch(resource, options) {
      const cache = watch(resource, options)
      members.push({ resource, cache })
      return cache
    },
    get isReady() {
      return members.length > 0 && members.every(({ cache }) => cache.isCurrent)
    },
    async ready() {
      const waitedFor = members
      await Promise.all(waitedFor.map(({ cache }) => cache.current()))
      if (waitedFor !== members) await new Promise(() => {})
    },
    get forbidden() {
      const isForbidden = ({ cache }: (typeof members)[number]) =>
        cache.failure?.kind === "Forbidden" && !cache.hasSynced
      return members.filter(isForbidden).map(({ resource }) => resource.plural)
    },
    close() {
      for (const { cache } of members) cache.close()
      members = []
    },
  }
}
