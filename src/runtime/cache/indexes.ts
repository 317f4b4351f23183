import type { CacheOptions, Projected } from "./cache.ts"

/** The values of one object in each index, in the order of the indexes. */
type Values = readonly (readonly string[])[]

/** The keys of objects by values that are computed from them. */
type Indexes<T> = {
  /** Computed before anything is changed: an index may throw. */
  valuesOf(object: T, key: string): Values
  move(key: string, before: Values, after: Values): void
  keysBy(name: string, value: string): ReadonlySet<string>
}

const noKeys: ReadonlySet<string> = new Set()

export function createIndexes<T extends Projected>(declared: CacheOptions<T>["indexes"] = {}): Indexes<T> {
  type Index = { valuesOf: (object: T, key: string) => readonly string[]; keys: Map<string, Set<string>> }
  const indexes = new Map<string, Index>()
  for (const [name, valuesOf] of Object.entries(declared)) indexes.set(name, { valuesOf, keys: new Map() })
  return {
    valuesOf: (object, key) => [...indexes.values()].map(({ valuesOf }) => [...valuesOf(object, key)]),
    move(key, before, after) {
      let position = 0
      for (const { keys } of indexes.values()) {
        const old = before[position] ?? []
        const now = after[position++] ?? []
        for (const value of old) {
          if (now.includes(value)) continue
          const found = keys.get(value)
          found?.delete(key)
          if (found?.size === 0) keys.delete(value)
        }
        for (const value of now) {
          const found = keys.get(value)
          if (found) found.add(key)
          else keys.set(value, new Set([key]))
        }
      }
    },
    keysBy(name, value) {
      const index = indexes.get(name)
      if (!index) throw new Error(`there is no index named ${name}`)
      return index.keys.get(value) ?? noKeys
    },
  }
}
