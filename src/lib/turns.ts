/** At most `limit` at a time for each key; the others wait in line. Keys nobody uses cost nothing. */
export function createTurns(limit: number) {
  const lines = new Map<string, { active: number; waiting: Set<() => void> }>()

  /** Runs `work` when it is its turn, or rejects with the signal's reason if that comes first. */
  return async function inTurn<T>(key: string, signal: AbortSignal | undefined, work: () => Promise<T>): Promise<T> {
    signal?.throwIfAborted()
    const line = lines.get(key) ?? { active: 0, waiting: new Set() }
    lines.set(key, line)
    if (line.active < limit) line.active++
    else await turnIn(line.waiting, signal)
    try {
      return await work()
    } finally {
      // The turn is handed on, not given back: nobody who comes in between can take it.
      const [next] = line.waiting
      if (next) next()
      else if (--line.active === 0) lines.delete(key)
    }
  }
}

function turnIn(waiting: Set<() => void>, signal: AbortSignal | undefined): Promise<void> {
  return new Promise((resolve, reject) => {
    const leave = () => {
      waiting.delete(begin)
      signal?.removeEventListener("abort", abort)
    }
    const begin = () => {
      leave()
      resolve()
    }
    const abort = () => {
      leave()
      reject(signal?.reason)
    }
    waiting.add(begin)
    signal?.addEventListener("abort", abort, { once: true })
  })
}
