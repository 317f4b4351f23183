import type { Obj } from "../object.ts"

/** The change of one object in one revision. */
export type Change = {
  readonly revision: number
  readonly place: string
  readonly type: "ADDED" | "MODIFIED" | "DELETED"
  /** The new version; for a deletion the last version, with the revision of the deletion. */
  readonly object: Obj
  readonly before: Obj | undefined
}

/** Objects of one namespace (or of the cluster), kept so that a list costs only its length. */
class Bucket {
  readonly objects = new Map<string, Obj>()
  #names: string[] = [] // sorted; may still hold removed names
  #added: string[] = [] // not yet merged into #names
  #isStale = false // a name was added or removed
  #list: readonly Obj[] | undefined

  set(name: string, object: Obj) {
    if (!this.objects.has(name)) {
      this.#added.push(name)
      this.#isStale = true
    }
    this.objects.set(name, object)
    this.#list = undefined
  }

  delete(name: string) {
    this.objects.delete(name)
    this.#isStale = true
    this.#list = undefined
  }

  /** Sorted by name. The array never changes afterwards: it is a snapshot. */
  list(): readonly Obj[] {
    if (this.#list) return this.#list
    if (this.#isStale) {
      this.#names = merge(this.#names, this.#added.sort()).filter(name => this.objects.has(name))
      this.#added = []
      this.#isStale = false
    }
    this.#list = this.#names.map(name => this.objects.get(name) as Obj)
    return this.#list
  }
}

/** Merges two sorted lists, each name once. */
function merge(left: string[], right: string[]): string[] {
  const merged: string[] = []
  let at = 0
  for (const name of right) {
    while (at < left.length && (left[at] as string) < name) merged.push(left[at++] as string)
    if (left[at] !== name && merged.at(-1) !== name) merged.push(name)
  }
  while (at < left.length) merged.push(left[at++] as string)
  return merged
}

/** One storage place: its objects, and their recent changes. */
export class Shelf {
  readonly #buckets = new Map<string, Bucket>()
  #all: readonly Obj[] | undefined
  #changes: Change[] = []
  #compactedTo = 0
  readonly #kept: number
  /** Lists of past revisions, for further pages. */
  readonly #past = new Map<string, readonly Obj[]>()

  constructor(kept: number) {
    this.#kept = kept
  }

  get(namespace: string, name: string): Obj | undefined {
    return this.#buckets.get(namespace)?.objects.get(name)
  }

  /** In the order of the server's keys: `namespace/name`. */
  list(namespace: string | undefined): readonly Obj[] {
    if (namespace !== undefined) return this.#buckets.get(namespace)?.list() ?? []
    if (this.#all) return this.#all
    const namespaces = [...this.#buckets.keys()].sort((a, b) => (`${a}/` < `${b}/` ? -1 : 1))
    const lists = namespaces.map(each => this.#buckets.get(each)?.list() ?? [])
    this.#all = lists.length === 1 ? lists[0] : lists.flat()
    return this.#all as readonly Obj[]
  }

  put(change: Change) {
    const { object } = change
    const { namespace = "", name } = object.metadata
    const bucket = this.#buckets.get(namespace) ?? new Bucket()
    this.#buckets.set(namespace, bucket)
    if (change.type === "DELETED") bucket.delete(name)
    else bucket.set(name, object)
    if (bucket.objects.size === 0) this.#buckets.delete(namespace)
    this.#all = undefined
    this.#changes.push(change)
    // Forgets only at twice the number, then half of it, so that the cost is spread over many changes.
    if (this.#changes.length >= 2 * this.#kept) this.#forget(this.#kept)
  }

  /** Restores a saved object, without a change in the log. */
  restore(object: Obj) {
    this.put({ revision: 0, place: "", type: "ADDED", object, before: undefined })
    this.#changes = []
  }

  /** The changes after a revision, oldest first; undefined if they are no longer kept. */
  since(revision: number): readonly Change[] | undefined {
    if (revision < this.#compactedTo) return undefined
    return this.#changes.slice(this.#after(revision))
  }

  /** The list at a revision, rebuilt by undoing later changes; undefined if these are no longer kept. */
  listAt(revision: number, namespace: string | undefined): readonly Obj[] | undefined {
    if (revision < this.#compactedTo) return undefined
    const undone = this.#changes.slice(this.#after(revision))
    if (undone.length === 0) return this.list(namespace)
    const key = `${revision} ${namespace ?? "*"}`
    const known = this.#past.get(key)
    if (known) return known
    const objects = new Map(this.list(namespace).map(object => [keyOf(object), object]))
    for (const { object, before } of undone.reverse()) {
      if (namespace !== undefined && (object.metadata.namespace ?? "") !== namespace) continue
      if (before) objects.set(keyOf(object), before)
      else objects.delete(keyOf(object))
    }
    const list = [...objects].sort(([a], [b]) => (a < b ? -1 : 1)).map(([, object]) => object)
    this.#past.set(key, list)
    for (const oldest of this.#past.keys()) {
      if (this.#past.size <= 8) break
      this.#past.delete(oldest)
    }
    return list
  }

  /** Forgets changes up to a revision. A later request for them gets the answer that they have expired. */
  compact(revision: number) {
    this.#compactedTo = Math.max(this.#compactedTo, revision)
    this.#changes = this.#changes.slice(this.#after(revision))
    this.#past.clear()
  }

  #forget(kept: number) {
    const last = this.#changes[this.#changes.length - kept - 1]
    if (last) this.compact(last.revision)
  }

  /** The index of the first change after a revision. */
  #after(revision: number): number {
    let low = 0
    let high = this.#changes.length
    while (low < high) {
      const middle = (low + high) >>> 1
      if ((this.#changes[middle] as Change).revision <= revision) low = middle + 1
      else high = middle
    }
    return low
  }
}

/** As the server orders its keys; `-` sorts before `/`. */
const keyOf = ({ metadata: { namespace, name } }: Obj) => (namespace ? `${namespace}/${name}` : name)
