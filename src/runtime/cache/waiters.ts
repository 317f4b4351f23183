import { compareVersions } from "#lib/resource-version.ts"

type Waiter = { key: string; version: string; resolve: () => void }

export type Waiters = {
  wait(key: string, version: string, signal?: AbortSignal): Promise<void>
  /** This object is shown at `version`. */
  shown(key: string, version: string): void
  /** Everything up to `version` is shown. */
  passed(version: string): void
  readonly size: number
}

/** Callers that wait until the cache has caught up with their write. */
export function createWaiters(): Waiters {
  const byKey = new Map<string, Set<Waiter>>()
  let size = 0
  // The versions waited for are searched only when at least one of them was reached, so that any other event costs one
  // comparison.
  let lowest: string | undefined

  const remove = (waiter: Waiter) => {
    const waiters = byKey.get(waiter.key)
    if (!waiters?.delete(waiter)) return
    size--
    if (waiters.size === 0) byKey.delete(waiter.key)
    if (size === 0) lowest = undefined
  }

  return {
    wait(key, version, signal) {
      return new Promise((resolve, reject) => {
        if (signal?.aborted) return reject(signal.reason)
        const onAbort = () => {
          remove(waiter)
          reject(signal?.reason)
        }
        const waiter: Waiter = {
          key,
          version,
          resolve: () => {
            signal?.removeEventListener("abort", onAbort)
            remove(waiter)
            resolve()
          },
        }
        signal?.addEventListener("abort", onAbort, { once: true })
        const waiters = byKey.get(key) ?? new Set()
        byKey.set(key, waiters.add(waiter))
        size++
        if (lowest === undefined || compareVersions(version, lowest) < 0) lowest = version
      })
    },
    shown(key, version) {
      for (const waiter of byKey.get(key) ?? []) if (compareVersions(waiter.version, version) <= 0) waiter.resolve()
    },
    passed(version) {
      if (lowest === undefined || compareVersions(lowest, version) > 0) return
      lowest = undefined
      for (const waiters of [...byKey.values()])
        for (const waiter of [...waiters])
          if (compareVersions(waiter.version, version) <= 0) waiter.resolve()
          else if (lowest === undefined || compareVersions(waiter.version, lowest) < 0) lowest = waiter.version
    },
    get size() {
      return size
    },
  }
}
