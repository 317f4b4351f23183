import type { Clock } from "./clock.ts"

type Priority = { background: boolean }

/**
 * Collects keys while another process leads, and opens the caches that they need. Nothing is decided from them before
 * this process leads.
 */
export function createStandby(clock: Clock, lead: Promise<void>) {
  const keys = new Map<string, Priority>()
  const cold = new Set<string>()
  let warm: ((key: string) => void) | undefined
  let isScheduled = false
  let isOver = false

  /** Once for all keys of one turn: a thousand events that concern one key open its caches once. */
  function warmSoon() {
    if (!warm || isScheduled || cold.size === 0) return
    isScheduled = true
    clock.after(0, () => {
      isScheduled = false
      if (isOver) return
      const due = [...cold]
      cold.clear()
      for (const key of due) warm?.(key)
    })
  }

  return {
    get isOver() {
      return isOver
    },
    /** Every key that was added, to be looked at once this process leads. */
    keys: keys as ReadonlyMap<string, Priority>,
    add(key: string, { background = false } = {}) {
      keys.set(key, { background: background && (keys.get(key)?.background ?? true) })
      cold.add(key)
      warmSoon()
    },
    async untilLead(how: typeof warm): Promise<void> {
      warm = how
      warmSoon()
      await lead
      isOver = true
    },
  }
}
