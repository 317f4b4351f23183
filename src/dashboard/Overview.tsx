import { useMemo } from "preact/hooks"
import type { Row } from "#web/wire.ts"
import { type Address, detailsAddress, type SortKey, toggled } from "./address.ts"
import type { Feed } from "./feeds.ts"
import { viewOf } from "./kinds/all.ts"
import { overviewRows, tally } from "./overview.ts"
import { Ago, HeadNotes, State, To } from "./parts.tsx"
import { useSurroundings } from "./surroundings.tsx"
import { VirtualRows } from "./VirtualRows.tsx"
import { counted, spaced } from "./words.ts"

const sorts: Record<SortKey, string> = {
  attention: "What needs you first",
  name: "Name",
  progress: "Least progress first",
  age: "Newest change first",
}

/** One line for each object of every kind, those that need a person first. */
export function Overview({ feeds }: { feeds: readonly { kind: string; feed: Feed | undefined }[] }) {
  const { address, go, session } = useSurroundings()
  const { overview } = address.value
  const all = feeds.flatMap(({ feed }) => (feed ? [...feed.rows.values()] : []))
  const rows = overviewRows(all, overview)
  const change = (part: Partial<Address["overview"]>) => go({ ...address.value, overview: { ...overview, ...part } })
  const acting = all.filter(({ attention }) => attention === "Act").length
  const unknown = useMemo(
    () =>
      unknownWords(
        address.value,
        session.kinds.map(({ id }) => id),
      ),
    [address.value, session],
  )
  const isReady = feeds.some(({ feed }) => feed?.head.isReady)
  return (
    <main class="overview">
      <h1>
        Overview{" "}
        <span class="count" role="status">
          {acting === 0 ? "nothing needs you" : `${counted(acting, "object needs", "objects need")} you`}
        </span>
      </h1>
      {unknown.map(word => (
        <p class="notice warn">{word}</p>
      ))}
      {feeds.map(({ feed }) => (
        <HeadNotes head={feed?.head.problem?.reason === "NotInstalled" && all.length > 0 ? undefined : feed?.head} />
      ))}
      <form class="filters" role="search" onSubmit={event => event.preventDefault()}>
        <input
          type="search"
          aria-label="Search by name, state, reason or image"
          placeholder="Search"
          value={overview.search}
          onInput={event => change({ search: event.currentTarget.value })}
        />
        <Chips
          label="Kinds"
          values={tally(all.map(({ kind }) => kind))}
          chosen={overview.kinds}
          title={kind => session.kinds.find(({ id }) => id === kind)?.kind ?? kind}
          onChoose={kinds => change({ kinds })}
        />
        <Chips
          label="States"
          values={tally(all.map(({ state }) => state))}
          chosen={overview.states}
          title={spaced}
          onChoose={states => change({ states })}
        />
        <label class="sort">
          Sort
          <select value={overview.sort} onChange={event => change({ sort: event.currentTarget.value as SortKey })}>
            {Object.entries(sorts).map(([key, title]) => (
              <option value={key}>{title}</option>
            ))}
          </select>
        </label>
      </form>
      {rows.length === 0 ? (
        <p class="empty">{emptyWords(isReady, all.length)}</p>
      ) : (
        <Lines rows={rows} total={all.length} />
      )}
    </main>
  )
}

export function Lines({ rows, total }: { rows: readonly Row[]; total: number }) {
  return (
    <div class="lines" role="table" aria-label="Rollouts and other objects" aria-rowcount={rows.length + 1}>
      <div role="rowgroup">
        <div class="line head" role="row" aria-rowindex={1}>
          <span role="columnheader">State</span>
          <span role="columnheader">Name</span>
          <span role="columnheader">Progress</span>
          <span role="columnheader">Reason</span>
          <span role="columnheader">Changed</span>
        </div>
      </div>
      <VirtualRows count={rows.length} rowHeight={53} row={index => <Line row={rows[index]!} index={index} />} />
      {rows.length < total && (
        <p class="dim shown">
          {rows.length} of {counted(total, "object")} shown
        </p>
      )}
    </div>
  )
}

function Line({ row, index }: { row: Row; index: number }) {
  const { session } = useSurroundings()
  const kind = session.kinds.find(({ id }) => id === row.kind)
  const { Summary } = viewOf(row.view)
  const why = [row.reason !== row.state ? row.reason : "", row.message].filter(Boolean)
  return (
    <div
      class={`line ${row.attention === "Act" ? "act" : ""}`}
      role="row"
      aria-rowindex={index + 2}
      data-row
      key={`${row.kind} ${row.id}`}
    >
      <span role="cell">
        <RowState row={row} />
      </span>
      <span role="cell" class="name">
        <To address={detailsAddress(row)}>{row.name}</To>
        <small class="dim">
          {kind?.kind ?? row.kind}
          {row.namespace && ` in ${row.namespace}`}
        </small>
      </span>
      <span role="cell" class="summary">
        {row.unreadable ? null : <Summary row={row} />}
      </span>
      <span role="cell" class="why">
        {row.unreadable ? <span class="clip">{row.unreadable}</span> : <Reason words={why} />}
      </span>
      <span role="cell" class="time dim">
        <Ago at={row.since ?? row.createdAt} />
      </span>
    </div>
  )
}

function RowState({ row }: { row: Row }) {
  if (row.unreadable) return <State state="Unreadable" tone="bad" />
  if ("awaitsApproval" in row && row.awaitsApproval) return <State state="Needs approval" tone="warn" />
  return <State state={row.state} />
}

const Reason = ({ words: [first, ...rest] }: { words: string[] }) => (
  <span class="clip" title={rest.join(" ")}>
    {rest.length > 0 ? <b>{first}</b> : first} {rest.join(" ")}
  </span>
)

function Chips(props: {
  label: string
  values: readonly { value: string; count: number }[]
  chosen: readonly string[]
  title: (value: string) => string
  onChoose: (values: string[]) => void
}) {
  const { label, values, chosen, title, onChoose } = props
  // A value of the address stays visible where no object has it: otherwise nothing would say why the list is empty.
  const all = [
    ...values,
    ...chosen.filter(each => !values.some(({ value }) => value === each)).map(value => ({ value, count: 0 })),
  ]
  if (all.length < 2 && chosen.length === 0) return null
  return (
    <fieldset class="chips">
      <legend class="hidden">{label}</legend>
      {all.map(({ value, count }) => (
        <button
          type="button"
          class="chip"
          aria-pressed={chosen.includes(value)}
          onClick={() => onChoose(toggled(chosen, value))}
        >
          {title(value)} <span class="dim">{count}</span>
        </button>
      ))}
    </fieldset>
  )
}

const emptyWords = (isReady: boolean, count: number) =>
  count > 0 ? "Nothing matches these filters." : isReady ? "There is nothing here yet." : "Reading the cluster…"

/** A kind in the address that the server does not show is named. */
const unknownWords = ({ overview }: Address, known: readonly string[]) =>
  overview.kinds
    .filter(kind => !known.includes(kind))
    .map(kind => `The filter kinds=${kind} names no kind that is shown here.`)
