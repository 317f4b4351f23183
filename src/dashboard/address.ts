/** What the address of the page says: the view, its filters and what is selected. A link shows another person the same. */
export type Address = {
  /** The object whose details are shown; without it, the overview. */
  object?: { kind: string; namespace: string; name: string }
  overview: OverviewFilter
  cells: CellFilter
  /** How the objects of a rollout are shown. */
  show: "map" | "list"
  /** The selected object of the rollout, as namespace/name. */
  selected: string
}

export type SortKey = "attention" | "name" | "progress" | "age"
export type OverviewFilter = { search: string; kinds: string[]; states: string[]; sort: SortKey }
/** `tier` is absent for all tiers, and "" for the default tier. */
export type CellFilter = { states: string[]; tier?: string; namespace: string; name: string }

const sorts: readonly SortKey[] = ["attention", "name", "progress", "age"]

export const overviewAddress: Address = {
  overview: { search: "", kinds: [], states: [], sort: "attention" },
  cells: { states: [], namespace: "", name: "" },
  show: "map",
  selected: "",
}

/** Reads a query. Parameters and values that mean nothing here are returned by name: they are reported, not dropped. */
export function parseAddress(query: string): { address: Address; unknown: string[] } {
  const address: Address = structuredClone(overviewAddress)
  const unknown: string[] = []
  const object = { kind: "", namespace: "", name: "" }
  const words = (text: string) => text.split(",").filter(Boolean)
  const readers: Record<string, (text: string) => unknown> = {
    kind: text => (object.kind = text),
    namespace: text => (object.namespace = text),
    name: text => (object.name = text),
    search: text => (address.overview.search = text),
    kinds: text => (address.overview.kinds = words(text)),
    states: text => (address.overview.states = words(text)),
    sort: text => {
      const sort = sorts.find(each => each === text)
      if (sort) address.overview.sort = sort
      else unknown.push(`sort=${text}`)
    },
    state: text => (address.cells.states = words(text)),
    tier: text => (address.cells.tier = text),
    "in-namespace": text => (address.cells.namespace = text),
    named: text => (address.cells.name = text),
    show: text => {
      if (text === "map" || text === "list") address.show = text
      else unknown.push(`show=${text}`)
    },
    object: text => (address.selected = text),
  }
  for (const [name, text] of new URLSearchParams(query)) {
    if (Object.hasOwn(readers, name)) readers[name]!(text)
    else unknown.push(name)
  }
  if (object.kind && object.name) address.object = object
  return { address, unknown }
}

/** The query of an address, with nothing in it that is as usual: `?kind=serviceimages&name=dicom`. */
export function formatAddress({ object, overview, cells, show, selected }: Address): string {
  const query = new URLSearchParams()
  const add = (name: string, text: string, usual = "") => {
    if (text !== usual) query.append(name, text)
  }
  if (object) {
    add("kind", object.kind)
    add("namespace", object.namespace)
    add("name", object.name)
    add("state", cells.states.join(","))
    if (cells.tier !== undefined) query.append("tier", cells.tier)
    add("in-namespace", cells.namespace)
    add("named", cells.name)
    add("show", show, "map")
    add("object", selected)
  } else {
    add("search", overview.search)
    add("kinds", overview.kinds.join(","))
    add("states", overview.states.join(","))
    add("sort", overview.sort, "attention")
  }
  const text = query.toString().replaceAll("%2F", "/").replaceAll("%2C", ",")
  return text ? `?${text}` : "?"
}

/** The address of an object's details, from wherever one is. */
export const detailsAddress = (object: { kind: string; namespace: string; name: string }): Address => ({
  ...overviewAddress,
  object: { kind: object.kind, namespace: object.namespace, name: object.name },
})

/** Adds a value to a filter, or takes it away. */
export const toggled = (values: readonly string[], value: string): string[] =>
  values.includes(value) ? values.filter(each => each !== value) : [...values, value]
