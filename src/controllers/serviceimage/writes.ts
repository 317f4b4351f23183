/**
 * Writes that are under way, limited in all and in each lane. A batch may begin while the one before it ends: waiting
 * for the slowest write of each, and then for a status, would leave the server idle in between.
 */
export class Writes {
  readonly #atOnce: number
  readonly #atOnceIn: (lane: string) => number
  /** Objects with a write under way, or about to be. */
  readonly #keys = new Set<string>()
  readonly #queue: Queued[] = []
  /** How many are under way in each lane. */
  readonly #lanes = new Map<string, number>()
  #running = 0
  #failure: { error: unknown } | undefined
  #waiting: { most: number; go: () => void }[] = []
  /** Called whenever a write has ended, with success or not. */
  onEnd: () => void = () => {}

  constructor(atOnce: number, atOnceIn: (lane: string) => number = () => atOnce) {
    this.#atOnce = atOnce
    this.#atOnceIn = atOnceIn
  }

  get keys(): ReadonlySet<string> {
    return this.#keys
  }

  begin(key: string, lane: string, write: () => Promise<void>): void {
    this.#keys.add(key)
    this.#queue.push({ key, lane, write })
    this.#next()
  }

  /** Resolves when at most this many are left. If a write failed, rejects with the first error once all have ended. */
  async untilAtMost(most: number): Promise<void> {
    while (this.#keys.size > (this.#failure ? 0 : most))
      await new Promise<void>(go => this.#waiting.push({ most: this.#failure ? 0 : most, go }))
    if (!this.#failure) return
    const { error } = this.#failure
    this.#failure = undefined
    throw error
  }

  #next(): void {
    while (this.#running < this.#atOnce) {
      const index = this.#queue.findIndex(({ lane }) => (this.#lanes.get(lane) ?? 0) < this.#atOnceIn(lane))
      const [next] = index < 0 ? [] : this.#queue.splice(index, 1)
      if (!next) return
      const { key, lane, write } = next
      this.#running++
      this.#count(lane, 1)
      write()
        .catch(error => this.#fail(error))
        .finally(() => {
          this.#running--
          this.#count(lane, -1)
          this.#keys.delete(key)
          this.#next()
          this.#tell()
          this.onEnd()
        })
    }
  }

  #count(lane: string, by: 1 | -1): void {
    const count = (this.#lanes.get(lane) ?? 0) + by
    if (count > 0) this.#lanes.set(lane, count)
    else this.#lanes.delete(lane)
  }

  /** Drops the writes that have not begun: the server is failing, or refuses us. */
  #fail(error: unknown): void {
    this.#failure ??= { error }
    for (const { key } of this.#queue.splice(0)) this.#keys.delete(key)
  }

  #tell(): void {
    const left = this.#keys.size
    const ready = this.#waiting.filter(({ most }) => left <= most || this.#failure)
    this.#waiting = this.#waiting.filter(each => !ready.includes(each))
    for (const { go } of ready) go()
  }
}

type Queued = { key: string; lane: string; write: () => Promise<void> }
