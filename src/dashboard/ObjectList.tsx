import type { Cells, Lane } from "#web/wire.ts"
import { type Arrangement, idOf, stateOf } from "./map.ts"
import { State } from "./parts.tsx"
import { VirtualRows } from "./VirtualRows.tsx"
import { cellWords } from "./words.ts"

type Props = {
  cells: Cells
  lanes: readonly Lane[]
  arrangement: Arrangement
  selected: number
  onSelect: (index: number) => void
}

/** The same objects as the map, one line each. */
export function ObjectList({ cells, lanes, arrangement, selected, onSelect }: Props) {
  const { places } = arrangement
  const onKeyDown = (event: KeyboardEvent) => {
    const steps: Record<string, number> = { ArrowDown: 1, ArrowUp: -1, PageDown: 10, PageUp: -10 }
    const step = steps[event.key]
    if (step === undefined || places.length === 0) return
    event.preventDefault()
    onSelect(Math.max(0, Math.min(places.length - 1, selected + step)))
  }
  const row = (index: number) => {
    const place = places[index]!
    const state = stateOf(cells, place)
    const { word, tone } = cellWords[state]
    const tier = cells.tiers[cells.tier[place]!] ?? ""
    return (
      <div
        class={`object ${index === selected ? "chosen" : ""}`}
        role="row"
        aria-rowindex={index + 2}
        aria-selected={index === selected}
        data-row
        key={place}
      >
        <span role="gridcell">
          <button type="button" class="link" onClick={() => onSelect(index)}>
            {idOf(cells, place)}
          </button>
        </span>
        <span role="gridcell">{lanes.find(lane => lane.tier === tier)?.title ?? (tier || "default tier")}</span>
        <span role="gridcell">
          <State state={word} tone={tone} />
        </span>
      </div>
    )
  }
  return (
    <div class="objects" role="grid" aria-label="Objects" aria-rowcount={places.length + 1} onKeyDown={onKeyDown}>
      <div role="rowgroup">
        <div class="object head" role="row" aria-rowindex={1}>
          <span role="columnheader">Object</span>
          <span role="columnheader">Tier</span>
          <span role="columnheader">State</span>
        </div>
      </div>
      <VirtualRows class="box" isBox count={places.length} rowHeight={30} row={row} focused={selected} />
    </div>
  )
}
