import { useMemo } from "preact/hooks"
import type { Cells, Lane } from "#web/wire.ts"
import { type Address, toggled } from "../../address.ts"
import { arrange, idOf, placeOf, stateOf } from "../../map.ts"
import { ObjectList } from "../../ObjectList.tsx"
import { ObjectMap } from "../../ObjectMap.tsx"
import { Section, State } from "../../parts.tsx"
import { useSurroundings } from "../../surroundings.tsx"
import { WhyOf } from "../../Why.tsx"
import { cellOrder, cellWords, counted, grouped } from "../../words.ts"

type Props = { cells: Cells; order: number; lanes: readonly Lane[] }

/** Every object of the rollout: as a map or as a list, filtered, with the one that is selected. */
export function Objects({ cells, order, lanes }: Props) {
  const { address, go } = useSurroundings()
  const { cells: filter, show, selected } = address.value
  const change = (part: Partial<Address>) => go({ ...address.value, ...part })
  const tierKey = lanes.map(({ tier }) => tier).join("\n")
  // Without a filter by state, only new objects change where a cell is.
  const stamp = filter.states.length > 0 ? cells : order
  const arrangement = useMemo(() => arrange(cells, tierKey.split("\n"), filter), [stamp, order, filter, tierKey])
  const place = useMemo(() => (selected ? placeOf(cells, selected) : -1), [selected, order])
  const index = place < 0 ? -1 : arrangement.places.indexOf(place)
  const onSelect = (at: number) => change({ selected: idOf(cells, arrangement.places[at]!) })
  const shown = arrangement.places.length
  const props = { cells, lanes, arrangement, selected: index, onSelect }
  return (
    <Section
      title="Objects"
      class="with-panel"
      note={`${counted(shown, "object")}${shown < total(cells) ? ` of ${grouped(total(cells))}` : ""}`}
    >
      <Filters cells={cells} lanes={lanes} address={address.value} change={change} />
      <div class={`objects-and-panel ${selected ? "has-panel" : ""}`}>
        <div class="objects-box">
          {shown === 0 && <p class="empty">No object matches these filters.</p>}
          {show === "map" ? <ObjectMap {...props} /> : <ObjectList {...props} />}
        </div>
        {selected && (
          <aside class="panel" aria-label={`Why ${selected}`}>
            <header>
              <h3>{selected}</h3>
              <button type="button" class="small" onClick={() => change({ selected: "" })} aria-label="Close the panel">
                ✕
              </button>
            </header>
            {place < 0 ? (
              <p class="notice warn">There is no object {selected} in this rollout.</p>
            ) : (
              <>
                <State state={cellWords[stateOf(cells, place)].word} tone={cellWords[stateOf(cells, place)].tone} />
                <WhyOf object={objectAt(cells, place)} version={stateOf(cells, place)} />
              </>
            )}
          </aside>
        )}
      </div>
    </Section>
  )
}

const total = ({ names, counts, states }: Cells) => names.length - (counts[states.indexOf("Gone")] ?? 0)

const objectAt = (cells: Cells, place: number) => ({
  kind: cells.kind,
  namespace: cells.namespaces[cells.namespace[place]!] ?? "",
  name: cells.names[place]!,
})

function Filters(props: {
  cells: Cells
  lanes: readonly Lane[]
  address: Address
  change: (part: Partial<Address>) => void
}) {
  const { cells, lanes, address, change } = props
  const { cells: filter, show } = address
  const countOf = (state: (typeof cellOrder)[number]) => cells.counts[cells.states.indexOf(state)] ?? 0
  const states = cellOrder.filter(state => countOf(state) > 0 || filter.states.includes(state))
  const unknown = filter.states.filter(state => !cellOrder.some(known => known === state))
  const filterBy = (part: Partial<Address["cells"]>) => change({ cells: { ...filter, ...part } })
  const tierOf = (value: string) => {
    const { tier: _, ...rest } = filter
    change({ cells: value === "*" ? rest : { ...rest, tier: value.slice(1) } })
  }
  return (
    <form class="filters" role="search" aria-label="Objects" onSubmit={event => event.preventDefault()}>
      {unknown.map(state => (
        <p class="notice warn">The filter state={state} names no state of an object.</p>
      ))}
      <fieldset class="chips">
        <legend class="hidden">States</legend>
        {states.map(state => (
          <button
            type="button"
            class="chip"
            title={cellWords[state].help}
            aria-pressed={filter.states.includes(state)}
            onClick={() => filterBy({ states: toggled(filter.states, state) })}
          >
            <span class={`swatch ${state.toLowerCase()}`} aria-hidden="true" />
            {cellWords[state].word} <span class="dim">{grouped(countOf(state))}</span>
          </button>
        ))}
      </fieldset>
      <select
        aria-label="Tier"
        value={filter.tier === undefined ? "*" : `=${filter.tier}`}
        onChange={event => tierOf(event.currentTarget.value)}
      >
        <option value="*">All tiers</option>
        {lanes.map(({ tier, title }) => (
          <option value={`=${tier}`}>{title}</option>
        ))}
      </select>
      {cells.namespaces.length > 1 && (
        <input
          type="search"
          list="namespaces"
          aria-label="Namespace"
          placeholder="All namespaces"
          value={filter.namespace}
          onChange={event => filterBy({ namespace: event.currentTarget.value.trim() })}
        />
      )}
      <datalist id="namespaces">
        {[...cells.namespaces]
          .sort()
          .slice(0, 200)
          .map(namespace => (
            <option value={namespace} />
          ))}
      </datalist>
      <input
        type="search"
        aria-label="Name"
        placeholder="Name"
        value={filter.name}
        onInput={event => filterBy({ name: event.currentTarget.value })}
      />
      <fieldset class="chips switch">
        <legend class="hidden">Show as</legend>
        {(["map", "list"] as const).map(each => (
          <button type="button" class="chip" aria-pressed={show === each} onClick={() => change({ show: each })}>
            {each === "map" ? "Map" : "List"}
          </button>
        ))}
      </fieldset>
    </form>
  )
}
