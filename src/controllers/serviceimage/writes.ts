/**
 * Writes to objects that are under way, at most so many at once. A batch may be begun while the one before it ends:
 * waiting for the slowest of each, and then for a status, would leave the server idle in between.
 */
export class Writes {
  readonly #atOnce: number
  /** Objects with a write under way, or about to be. */
  readonly #keys = new Set<string>()
  readonly #queue: { key: string; write: () => Promise<void> }[] = []
  #running = 0
  #failure: { error: unknown } | undefined
  #waiting: { most: number; go: () => void }[] = []
  /** Called whenever one has ended, well or not. */
  onEnd: () => void = () => {}

  constructor(atOnce: number) {
    this.#atOnce = atOnce
  }

  get keys(): ReadonlySet<string> {
    return this.#keys
  }

  begin(key: string, write: () => Promise<void>): void {
    this.#keys.add(key)
    this.#queue.push({ key, write })
    this.#next()
  }

  /** Resolves when no more than so many are left; rejects, when all have ended, with what went wrong first. */
  async untilAtMost(most: number): Promise<void> {
    while (this.#keys.size > (this.#failure ? 0 : most))
      await new Promise<void>(go => this.#waiting.push({ most: this.#failure ? 0 : most, go }))
    if (!this.#failure) return
    const { error } = this.#failure
    this.#failure = undefined
    throw error
  }

  #next(): void {
    while (this.#running < this.#atOnce && this.#queue.length > 0) {
      const { key, write } = this.#queue.shift()!
      this.#running++
      write()
        .catch(error => this.#fail(error))
        .finally(() => {
          this.#running--
          this.#keys.delete(key)
          this.#next()
          this.#tell()
          this.onEnd()
        })
    }
  }

  /** What has not begun is not begun any more: the server is in trouble, or does not want us. */
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
