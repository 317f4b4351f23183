import { IndexedHeap } from "#lib/indexed-heap.ts"

/** What a node needs to pull an image as a pod would: the Secrets of the pod, in its namespace. */
export type PullSource = { readonly namespace: string; readonly secrets: readonly string[] }

/** A pod of an object runs on this node. */
export type Place = PullSource & { readonly node: string }

export const sourceId = ({ namespace, secrets }: PullSource) => [namespace, ...secrets].join(" ")

/** Nodes by name, with the sources of the pods there, by id. */
export type Nodes = ReadonlyMap<string, ReadonlyMap<string, PullSource>>

const nowhere: Nodes = new Map()

type Here = PullSource & { objects: number }
type Known = { readonly group: string | undefined; readonly places: readonly Place[] }

/**
 * On which nodes the pods of each group of objects run. A change of one object costs as much as it has pods: nothing
 * looks at the others.
 */
export class GroupedPlaces {
  readonly #objects = new Map<string, Known>()
  readonly #groups = new Map<string, Map<string, Map<string, Here>>>()

  /** Without places, the object keeps those that are known. Without a group it counts nowhere. */
  set(key: string, group: string | undefined, places?: readonly Place[]): void {
    const before = this.#objects.get(key)
    const after = { group, places: places ?? before?.places ?? [] }
    if (before?.group === group && before?.places === after.places) return
    if (before) this.#count(before, -1)
    this.#objects.set(key, after)
    this.#count(after, 1)
  }

  delete(key: string): void {
    const before = this.#objects.get(key)
    if (before) this.#count(before, -1)
    this.#objects.delete(key)
  }

  /** A live view, to be read now and not kept. */
  of(group: string): Nodes {
    return this.#groups.get(group) ?? nowhere
  }

  #count({ group, places }: Known, by: 1 | -1): void {
    if (group === undefined) return
    const nodes = getOrAdd(this.#groups, group, () => new Map<string, Map<string, Here>>())
    for (const { node, ...source } of places) {
      const id = sourceId(source)
      const sources = getOrAdd(nodes, node, () => new Map<string, Here>())
      const here = getOrAdd(sources, id, () => ({ ...source, objects: 0 }))
      here.objects += by
      if (here.objects === 0) sources.delete(id)
      if (sources.size === 0) nodes.delete(node)
    }
    if (nodes.size === 0) this.#groups.delete(group)
  }
}

/** The nodes that are asked with one source. */
export type Assigned = PullSource & { readonly nodes: readonly string[] }

/**
 * Gives each node to one source of a pod there, so that few sources are needed. A node stays with the source it was
 * given to, and another one joins a source that is needed anyway. A source without Secrets goes first: its pod has to
 * be able to pull without them.
 */
export function assign(nodes: Nodes, isGiven: (id: string, node: string) => boolean): Map<string, Assigned> {
  const found = new Map<string, PullSource & { nodes: string[] }>()
  const give = (node: string, id: string) => {
    const { namespace, secrets } = nodes.get(node)!.get(id)!
    getOrAdd(found, id, () => ({ namespace, secrets, nodes: [] as string[] })).nodes.push(node)
  }
  const left = new Set<string>()
  for (const node of [...nodes.keys()].sort()) {
    const id = [...nodes.get(node)!.keys()].sort().find(each => isGiven(each, node))
    if (id === undefined) left.add(node)
    else give(node, id)
  }
  const needed = new Set(found.keys())
  for (const node of [...left]) {
    const id = [...nodes.get(node)!.keys()].sort().find(each => needed.has(each))
    if (id === undefined) continue
    give(node, id)
    left.delete(node)
  }
  for (const hasSecrets of [false, true]) cover(nodes, left, hasSecrets, give)
  for (const assigned of found.values()) assigned.nodes.sort()
  return found
}

/** Again and again the source with most of the nodes that are left. */
function cover(nodes: Nodes, left: Set<string>, hasSecrets: boolean, give: (node: string, id: string) => void): void {
  const reach = new Map<string, string[]>()
  for (const node of left)
    for (const [id, { secrets }] of nodes.get(node)!)
      if (secrets.length > 0 === hasSecrets) getOrAdd(reach, id, () => [] as string[]).push(node)
  const heap = new IndexedHeap()
  for (const [id, own] of reach) heap.set(id, -own.length)
  for (let first = heap.first(); first; first = heap.first()) {
    const id = first.item
    const own = reach.get(id)!.filter(node => left.has(node))
    heap.delete(id)
    // Others have taken some of its nodes since: its turn may come later.
    if (own.length < -first.rank && own.length > 0) heap.set(id, -own.length)
    else
      for (const node of own) {
        give(node, id)
        left.delete(node)
      }
  }
}

function getOrAdd<K, V>(map: Map<K, V>, key: K, make: () => V): V {
  const value = map.get(key) ?? make()
  map.set(key, value)
  return value
}
