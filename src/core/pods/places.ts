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
 * given to. A source without Secrets goes first: its pod has to be able to pull without them anyway.
 */
export function assign(nodes: Nodes, isGiven: (id: string, node: string) => boolean): Map<string, Assigned> {
  const reach = new Map<string, number>()
  for (const sources of nodes.values()) for (const id of sources.keys()) reach.set(id, (reach.get(id) ?? 0) + 1)
  const isBetter = (a: [string, PullSource], b: [string, PullSource]) =>
    Number(a[1].secrets.length > 0) - Number(b[1].secrets.length > 0) ||
    reach.get(b[0])! - reach.get(a[0])! ||
    (a[0] < b[0] ? -1 : 1)
  const found = new Map<string, PullSource & { nodes: string[] }>()
  for (const node of [...nodes.keys()].sort()) {
    const sources = [...nodes.get(node)!]
    const [id, { namespace, secrets }] = sources.find(([id]) => isGiven(id, node)) ?? sources.sort(isBetter)[0]!
    getOrAdd(found, id, () => ({ namespace, secrets, nodes: [] as string[] })).nodes.push(node)
  }
  return found
}

function getOrAdd<K, V>(map: Map<K, V>, key: K, make: () => V): V {
  const value = map.get(key) ?? make()
  map.set(key, value)
  return value
}
