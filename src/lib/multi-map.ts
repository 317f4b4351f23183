/**
 * Many texts under one name, small in memory: most names have one or two, and a Set for each would be most of the
 * cost. Iterating over a name while it changes is not safe.
 */
export class MultiMap {
  readonly #found = new Map<string, string | string[] | Set<string>>()

  has(name: string): boolean {
    return this.#found.has(name)
  }

  names(): IterableIterator<string> {
    return this.#found.keys()
  }

  /** In no particular order. */
  of(name: string): Iterable<string> {
    const found = this.#found.get(name)
    if (found === undefined) return nothing
    return typeof found === "string" ? [found] : found
  }

  add(name: string, value: string): void {
    const found = this.#found.get(name)
    if (found === undefined) this.#found.set(name, value)
    else if (typeof found === "string") {
      if (found !== value) this.#found.set(name, [found, value])
    } else if (found instanceof Set) found.add(value)
    else if (!found.includes(value)) {
      if (found.length < arrayMax) found.push(value)
      else this.#found.set(name, new Set(found).add(value))
    }
  }

  delete(name: string, value: string): void {
    const found = this.#found.get(name)
    if (found === undefined) return
    if (typeof found === "string") {
      if (found === value) this.#found.delete(name)
    } else if (found instanceof Set) {
      if (found.delete(value) && found.size === 0) this.#found.delete(name)
    } else {
      const index = found.indexOf(value)
      if (index >= 0) found.splice(index, 1)
      if (found.length === 0) this.#found.delete(name)
    }
  }
}

const arrayMax = 16
const nothing: readonly string[] = []
