/** Returns one shared value for equal ones, so that a hundred thousand objects share a few. */
export class Interner<T> {
  readonly #known = new Map<string, T>()
  readonly #max: number

  constructor(max: number) {
    this.#max = max
  }

  /** Values with the same `id` are equal. */
  share(id: string, value: T): T {
    const known = this.#known.get(id)
    if (known !== undefined) return known
    // Unused values are not tracked one by one: all are dropped, and those in use are added again.
    if (this.#known.size >= this.#max) this.#known.clear()
    this.#known.set(id, value)
    return value
  }
}
