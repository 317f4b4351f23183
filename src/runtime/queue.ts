/**
 * Which objects need another look: keys only, each at most once in the queue and at most once in work. A key added
 * while it is in work is looked at again afterwards (dirty/processing, as in client-go's workqueue).
 */
export type Queue = {
  /** Background keys (start-up events) are taken only when no ordinary one waits; an ordinary add promotes. */
  add(key: string, options?: { background?: boolean }): void
  /** After `ms`; of several delays for one key the earliest counts. */
  addAfter(key: string, ms: number): void
  /** With exponential back-off per key, or after `atLeastMs` if that is longer. */
  addRateLimited(key: string, atLeastMs?: number): void
  /** Ends the back-off of a key: its work went well. */
  forget(key: string): void
  /** The next key, or undefined once the queue is shut down and empty of keys in work. */
  take(): Promise<string | undefined>
  /** Must follow every take. */
  done(key: string): void
  /** Takes no more keys, hands none out, wakes the takers. */
  shutDown(): void
  readonly depth: number
}
