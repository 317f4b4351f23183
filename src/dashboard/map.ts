import type { CellState, Cells } from "#web/wire.ts"
import type { CellFilter } from "./address.ts"

/** Objects of one tier, as places in the columns of `Cells`, from `start` to before `end` of the flat order. */
export type Group = { tier: string; start: number; end: number }
export type Arrangement = { places: Uint32Array; groups: Group[] }

/**
 * The places that pass the filter, tier by tier in the given order. Within a tier the order is that of the server, so
 * that an object keeps its place on the screen while the rollout goes on. One pass over the cells.
 */
export function arrange(cells: Cells, tierOrder: readonly string[], filter: CellFilter): Arrangement {
  const count = cells.names.length
  const gone = cells.states.indexOf("Gone")
  const wanted = filter.states.length > 0 ? cells.states.map(state => filter.states.includes(state)) : undefined
  const tier = filter.tier === undefined ? -1 : cells.tiers.indexOf(filter.tier)
  const namespace = filter.namespace === "" ? -1 : cells.namespaces.indexOf(filter.namespace)
  const isNowhere = (filter.tier !== undefined && tier < 0) || (filter.namespace !== "" && namespace < 0)
  const name = filter.name.toLowerCase()
  const isShown = (place: number) =>
    !isNowhere &&
    cells.state[place] !== gone &&
    (!wanted || wanted[cells.state[place]!]) &&
    (tier < 0 || cells.tier[place] === tier) &&
    (namespace < 0 || cells.namespace[place] === namespace) &&
    (name === "" || cells.names[place]!.toLowerCase().includes(name))
  const byTier: number[][] = cells.tiers.map(() => [])
  for (let place = 0; place < count; place++) if (isShown(place)) byTier[cells.tier[place]!]?.push(place)
  const rank = (tier: string) => {
    const at = tierOrder.indexOf(tier)
    return at < 0 ? tierOrder.length : at
  }
  const order = cells.tiers.map((tier, at) => ({ tier, at })).sort((a, b) => rank(a.tier) - rank(b.tier) || a.at - b.at)
  const groups: Group[] = []
  const places = new Uint32Array(byTier.reduce((sum, each) => sum + each.length, 0))
  let start = 0
  for (const { tier, at } of order) {
    const members = byTier[at]!
    if (members.length === 0) continue
    places.set(members, start)
    groups.push({ tier, start, end: start + members.length })
    start += members.length
  }
  return { places, groups }
}

/** Where everything is drawn, in CSS pixels. */
export type Layout = {
  pitch: number
  /** The side of a cell: the pitch without the gap. */
  side: number
  columns: number
  height: number
  groups: (Group & { top: number; rows: number })[]
}

const headingHeight = 26
const groupGap = 10

/** Few cells are large enough to hit with a finger; ten thousand still fit a screen. */
export function pitchFor(count: number): number {
  if (count <= 150) return 24
  if (count <= 600) return 18
  if (count <= 2500) return 13
  return 9
}

export function layOut({ groups, places }: Arrangement, width: number): Layout {
  const pitch = pitchFor(places.length)
  const columns = Math.max(1, Math.floor(width / pitch))
  let top = 0
  const laid = groups.map(group => {
    const rows = Math.ceil((group.end - group.start) / columns)
    const at = { ...group, top: top + headingHeight, rows }
    top = at.top + rows * pitch + groupGap
    return at
  })
  return { pitch, side: pitch - (pitch > 12 ? 3 : 2), columns, height: Math.max(0, top - groupGap), groups: laid }
}

/** The top left corner of the cell at `index` of the flat order. */
export function cornerOf({ groups, columns, pitch }: Layout, index: number): { x: number; y: number } {
  const group = groups.find(({ end }) => index < end) ?? groups.at(-1)!
  const within = index - group.start
  return { x: (within % columns) * pitch, y: group.top + Math.floor(within / columns) * pitch }
}

/** The index of the cell at a point, if there is one. */
export function cellAt(layout: Layout, x: number, y: number): number | undefined {
  const { groups, pitch, columns } = layout
  const group = groups.find(({ top, rows }) => y >= top && y < top + rows * pitch)
  const column = Math.floor(x / pitch)
  if (!group || column < 0 || column >= columns) return undefined
  const index = group.start + Math.floor((y - group.top) / pitch) * columns + column
  return index < group.end ? index : undefined
}

/** Where a key leads from `index`: along rows, up and down across tiers, to the ends. Undefined: not a key of the map. */
export function walk({ groups, columns }: Layout, index: number, key: string, isFar = false): number | undefined {
  const last = (groups.at(-1)?.end ?? 0) - 1
  if (last < 0) return undefined
  const at = Math.min(Math.max(index, 0), last)
  const which = groups.findIndex(({ end }) => at < end)
  const group = groups[which]!
  const column = (at - group.start) % columns
  const below = (from: Group | undefined) => (from ? Math.min(from.start + column, from.end - 1) : at)
  const lastRowOf = ({ start, end }: Group) => start + Math.floor((end - 1 - start) / columns) * columns
  switch (key) {
    case "ArrowRight":
      return Math.min(at + 1, last)
    case "ArrowLeft":
      return Math.max(at - 1, 0)
    case "ArrowDown": {
      if (at + columns < group.end) return at + columns
      // The last row may be shorter: first to its end, then to the next tier.
      return at < lastRowOf(group) ? group.end - 1 : below(groups[which + 1])
    }
    case "ArrowUp": {
      if (at - columns >= group.start) return at - columns
      const above = groups[which - 1]
      return above ? Math.min(lastRowOf(above) + column, above.end - 1) : at
    }
    case "PageDown":
      return Math.min(at + columns * 10, last)
    case "PageUp":
      return Math.max(at - columns * 10, 0)
    case "Home":
      return isFar ? 0 : at - column
    case "End":
      return isFar ? last : Math.min(at - column + columns - 1, group.end - 1)
    default:
      return undefined
  }
}

/** The place of `namespace/name` (or of the name, for a kind without namespaces), or -1. */
export function placeOf(cells: Cells, id: string): number {
  const slash = id.indexOf("/")
  const name = id.slice(slash + 1)
  const namespace = cells.namespaces.indexOf(slash < 0 ? "" : id.slice(0, slash))
  for (let place = 0; place < cells.names.length; place++)
    if (cells.names[place] === name && cells.namespace[place] === namespace) return place
  return -1
}

export function idOf(cells: Cells, place: number): string {
  const namespace = cells.namespaces[cells.namespace[place]!]
  return namespace ? `${namespace}/${cells.names[place]}` : cells.names[place]!
}

export const stateOf = (cells: Cells, place: number): CellState => cells.states[cells.state[place]!] ?? "Unmatched"
