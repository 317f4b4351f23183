import { createLimiter, type Limits } from "./limiter.ts"

/**
 * Work that is under way or waits, limited in all and for each owner. More may begin while the rest ends: waiting for
 * the slowest of each batch, and then for a status, would leave the server idle in between.
 */
export class Batch<Key = string> {
  readonly #run: ReturnType<typeof createLimiter>["run"]
  /** Of work that is under way, or waits. */
  readonly #keys = new Set<Key>()
  #failure: { error: unknown } | undefined
  /** Ends the waiting of all work that has not begun. */
  #drop = new AbortController()
  #waiting: { most: number; go: () => void }[] = []
  /** Called whenever work has ended, with success or not. */
  onEnd: () => void = () => {}

  constructor(limits: Limits) {
    this.#run = createLimiter(limits).run
  }

  get keys(): ReadonlySet<Key> {
    return this.#keys
  }

  /** Whether work has failed since that was last reported. */
  get hasFailed(): boolean {
    return this.#failure !== undefined
  }

  begin(key: Key, owner: string, work: () => Promise<void>): void {
    this.#keys.add(key)
    this.#run({ owner, signal: this.#drop.signal }, () => this.#try(work))
      .catch(() => {}) // dropped before it began
      .finally(() => {
        this.#keys.delete(key)
        this.#wake()
        this.onEnd()
      })
  }

  /** Resolves when at most this many are left. If work failed, rejects with the first error once all has ended. */
  async untilAtMost(most: number): Promise<void> {
    while (this.#keys.size > (this.#failure ? 0 : most))
      await new Promise<void>(go => this.#waiting.push({ most: this.#failure ? 0 : most, go }))
    if (!this.#failure) return
    const { error } = this.#failure
    this.#failure = undefined
    throw error
  }

  /** Work that fails drops the work that has not begun: the server is failing, or refuses us. */
  async #try(work: () => Promise<void>): Promise<void> {
    try {
      await work()
    } catch (error) {
      this.#failure ??= { error }
      this.#drop.abort()
      this.#drop = new AbortController()
    }
  }

  #wake(): void {
    const left = this.#keys.size
    const ready = this.#waiting.filter(({ most }) => left <= most || this.#failure)
    this.#waiting = this.#waiting.filter(each => !ready.includes(each))
    for (const { go } of ready) go()
  }
}

/** Runs `work` over the items, at most `limit` at once, and waits for all. The first failure stops further starts. */
export async function forEachLimited<T>(
  items: Iterable<T>,
  limit: number,
  work: (item: T) => Promise<void>,
): Promise<void> {
  const batch = new Batch<number>({ all: limit })
  let count = 0
  for (const item of items) {
    while (batch.hasFailed || batch.keys.size >= limit) await batch.untilAtMost(limit - 1)
    batch.begin(count++, "", () => work(item))
  }
  await batch.untilAtMost(0)
}
