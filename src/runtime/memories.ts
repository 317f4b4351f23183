/**
 * What a process remembers of objects beyond the objects themselves. An object re-created under the same name starts
 * with a fresh memory.
 */
export type Memories<M> = {
  of(key: string, uid: string): M
  /** Forgets a key. Returns what was remembered of it. */
  drop(key: string): M | undefined
  entries(): IterableIterator<[string, M]>
}

export function memoriesOf<M>(fresh: () => M): Memories<M> {
  const known = new Map<string, { uid: string; memory: M }>()
  return {
    of(key, uid) {
      const before = known.get(key)
      if (before?.uid === uid) return before.memory
      const memory = fresh()
      known.set(key, { uid, memory })
      return memory
    },
    drop(key) {
      const before = known.get(key)
      known.delete(key)
      return before?.memory
    },
    *entries() {
      for (const [key, { memory }] of known) yield [key, memory]
    },
  }
}
