import { type Entry, isFinished } from "#core/pulls/node-facts.ts"
import type { Instant } from "#lib/instant.ts"

/** An entry with a time to live whose pull has ended, and when that was first seen here. */
export type Ended = Pick<Entry, "name" | "tag" | "version"> & { readonly ttlSeconds: number; readonly seenAt: Instant }

/**
 * The entries of a node whose time to live has begun. It counts from when this process first saw the end: the agent's own
 * time is of another machine's clock. A process that starts anew counts anew.
 */
export class EndedEntries {
  #seen: readonly Ended[] = []

  note(entries: readonly Entry[], now: Instant): readonly Ended[] {
    this.#seen = entries.flatMap(entry => {
      const { name, tag, version, ttlSeconds } = entry
      // A job has a time to live of its own, and its entries go with it.
      if (ttlSeconds === undefined || entry.owners.length > 0 || !isFinished(entry)) return []
      const before = this.#seen.find(each => isSameEntry(each, entry))
      return [{ name, tag, version, ttlSeconds, seenAt: before?.seenAt ?? now }]
    })
    return this.#seen
  }
}

const isSameEntry = (a: Pick<Entry, "name" | "tag" | "version">, b: Pick<Entry, "name" | "tag" | "version">) =>
  a.name === b.name && a.tag === b.tag && a.version === b.version
