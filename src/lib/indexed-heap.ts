/** The position of each item in a heap. For an item that is not in the heap it may be any number. */
export type Positions<T> = {
  get(item: T): number | undefined
  set(item: T, position: number): unknown
  delete(item: T): unknown
}

export type HeapOptions<T> = {
  /** Equal ranks are ordered by name, so that the order never depends on the order of arrival. */
  nameOf(item: T): string
  /** Items that store their position save the heap a map, which is most of the cost of filling it. */
  positions?: Positions<T>
}

/** A priority queue whose items can be moved and removed: set, delete and pop cost O(log n). */
export class IndexedHeap<T = string> {
  readonly #items: T[] = []
  readonly #ranks: number[] = []
  readonly #nameOf: (item: T) => string
  readonly #positions: Positions<T>

  constructor({ nameOf, positions = new Map() }: HeapOptions<T> = { nameOf: String }) {
    this.#nameOf = nameOf
    this.#positions = positions
  }

  get size(): number {
    return this.#items.length
  }

  has(item: T): boolean {
    return this.#positionOf(item) >= 0
  }

  /** The item with the lowest rank. */
  first(): { item: T; rank: number } | undefined {
    return this.size > 0 ? { item: this.#items[0]!, rank: this.#ranks[0]! } : undefined
  }

  set(item: T, rank: number): void {
    const known = this.#positionOf(item)
    const position = known < 0 ? this.size : known
    this.#place(item, rank, position)
    this.#sink(this.#rise(position))
  }

  delete(item: T): boolean {
    const position = this.#positionOf(item)
    if (position < 0) return false
    this.#positions.delete(item)
    const last = this.#items.pop()!
    const rank = this.#ranks.pop()!
    if (position < this.size) {
      this.#place(last, rank, position)
      this.#sink(this.#rise(position))
    }
    return true
  }

  /**
   * The first `count` items in order, leaving them in. Its cost follows `count`, not the size: it walks the heap from
   * the top along a frontier of at most `count` places, instead of popping everything and pushing it back.
   */
  firstItems(count: number): T[] {
    const found: T[] = []
    const frontier = this.size > 0 ? [0] : [] // the next one is last
    while (found.length < count && frontier.length > 0) {
      const position = frontier.pop()!
      found.push(this.#items[position]!)
      for (const child of [2 * position + 1, 2 * position + 2])
        if (child < this.size) frontier.splice(this.#placeIn(frontier, child), 0, child)
    }
    return found
  }

  #placeIn(frontier: readonly number[], position: number): number {
    let [low, high] = [0, frontier.length]
    while (low < high) {
      const middle = (low + high) >> 1
      if (this.#isBefore(position, frontier[middle]!)) low = middle + 1
      else high = middle
    }
    return low
  }

  /** An item is in this heap only if it is at its position: several heaps may share positions. */
  #positionOf(item: T): number {
    const position = this.#positions.get(item) ?? -1
    return position >= 0 && position < this.size && this.#items[position] === item ? position : -1
  }

  #isBefore(a: number, b: number): boolean {
    const [left, right] = [this.#ranks[a]!, this.#ranks[b]!]
    if (left !== right) return left < right
    return this.#nameOf(this.#items[a]!) < this.#nameOf(this.#items[b]!)
  }

  #place(item: T, rank: number, position: number): void {
    this.#items[position] = item
    this.#ranks[position] = rank
    this.#positions.set(item, position)
  }

  #swap(a: number, b: number): void {
    const [item, rank] = [this.#items[a]!, this.#ranks[a]!]
    this.#place(this.#items[b]!, this.#ranks[b]!, a)
    this.#place(item, rank, b)
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
      const left = 2 * at + 1
      let first = left < this.size && this.#isBefore(left, at) ? left : at
      if (left + 1 < this.size && this.#isBefore(left + 1, first)) first = left + 1
      if (first === at) return
      this.#swap(at, first)
      at = first
    }
  }
}
