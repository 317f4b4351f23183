/**
 * A priority queue whose entries can be moved and removed by key: set, delete and pop cost O(log n). Equal ranks are
 * ordered by key, so that what comes first never depends on the order of arrival.
 */
export class IndexedHeap {
  readonly #entries: { key: string; rank: number }[] = []
  readonly #positions = new Map<string, number>()

  get size(): number {
    return this.#entries.length
  }

  has(key: string): boolean {
    return this.#positions.has(key)
  }

  /** The entry with the lowest rank. */
  first(): Readonly<{ key: string; rank: number }> | undefined {
    return this.#entries[0]
  }

  set(key: string, rank: number): void {
    const position = this.#positions.get(key)
    if (position === undefined) {
      this.#place({ key, rank }, this.#entries.length)
      this.#rise(this.#entries.length - 1)
      return
    }
    this.#entries[position]!.rank = rank
    this.#sink(this.#rise(position))
  }

  delete(key: string): boolean {
    const position = this.#positions.get(key)
    if (position === undefined) return false
    this.#positions.delete(key)
    const last = this.#entries.pop()!
    if (position < this.#entries.length) {
      this.#place(last, position)
      this.#sink(this.#rise(position))
    }
    return true
  }

  /**
   * The first `count` keys in order, leaving them in. Its cost follows `count`, not the size: it walks the heap from
   * the top along a frontier of at most `count` places, instead of popping everything and pushing it back.
   */
  firstKeys(count: number): string[] {
    const keys: string[] = []
    const frontier = this.#entries.length > 0 ? [0] : []
    while (keys.length < count && frontier.length > 0) {
      let best = 0
      for (let i = 1; i < frontier.length; i++) if (this.#isBefore(frontier[i]!, frontier[best]!)) best = i
      const position = frontier[best]!
      frontier[best] = frontier[frontier.length - 1]!
      frontier.pop()
      keys.push(this.#entries[position]!.key)
      for (const child of [2 * position + 1, 2 * position + 2]) if (child < this.#entries.length) frontier.push(child)
    }
    return keys
  }

  #isBefore(a: number, b: number): boolean {
    const left = this.#entries[a]!
    const right = this.#entries[b]!
    return left.rank !== right.rank ? left.rank < right.rank : left.key < right.key
  }

  #place(entry: { key: string; rank: number }, position: number) {
    this.#entries[position] = entry
    this.#positions.set(entry.key, position)
  }

  #swap(a: number, b: number) {
    const entry = this.#entries[a]!
    this.#place(this.#entries[b]!, a)
    this.#place(entry, b)
  }

  #rise(position: number): number {
    let at = position
    while (at > 0) {
      const parent = (at - 1) >> 1
      if (!this.#isBefore(at, parent)) break
      this.#swap(at, parent)
      at = parent
    }
    return at
  }

  #sink(position: number): void {
    let at = position
    for (;;) {
      let first = at
      for (const child of [2 * at + 1, 2 * at + 2])
        if (child < this.#entries.length && this.#isBefore(child, first)) first = child
      if (first === at) return
      this.#swap(at, first)
      at = first
    }
  }
}
