import type { Clock } from "#runtime/clock.ts"

export type Expiring<V> = ReturnType<typeof createExpiring<V>>

/** A map that drops expired entries, and the oldest when there are more than `max`. */
export function createExpiring<V>(clock: Clock, max: number) {
  const entries = new Map<string, { value: V; until: number }>()
  return {
    get(key: string): { value: V; leftMs: number } | undefined {
      const entry = entries.get(key)
      if (!entry) return undefined
      const leftMs = entry.until - clock.monotonic()
      if (leftMs > 0) return { value: entry.value, leftMs }
      entries.delete(key)
      return undefined
    },
    set(key: string, value: V, ms: number): void {
      entries.delete(key) // and is added again as the newest
      entries.set(key, { value, until: clock.monotonic() + ms })
      if (entries.size > max) entries.delete(entries.keys().next().value!)
    },
  }
}
