import type { HistoryEntry } from "#web/wire.ts"
import { Ago, Image, Section, State, Table } from "./parts.tsx"
import { useSurroundings } from "./surroundings.tsx"
import { dayTime, durationOf, grouped } from "./words.ts"

/** Earlier operations, the newest first, with what each changed against the one before it. */
export function History({ entries }: { entries: readonly HistoryEntry[] }) {
  const { now } = useSurroundings()
  return (
    <Section title="History">
      <Table
        label="History"
        empty="No operation has been recorded yet."
        items={entries}
        columns={[
          { head: "Operation", cell: ({ id }) => <b>{id}</b> },
          { head: "Outcome", cell: ({ outcome }) => <State state={outcome} /> },
          {
            head: "Started",
            cell: ({ startedAt }) =>
              startedAt !== undefined && (
                <span title={dayTime(startedAt)}>
                  <Ago at={startedAt} />
                </span>
              ),
            class: "time",
          },
          { head: "Took", cell: entry => durationOf(entry, now.value), class: "time" },
          {
            head: "Objects",
            cell: ({ upToDate, total, failed }) =>
              `${grouped(upToDate)}/${grouped(total)}${failed > 0 ? `, ${grouped(failed)} failed` : ""}`,
            class: "time",
          },
          { head: "Images", cell: entry => <Changes entry={entry} />, class: "words" },
        ]}
      />
    </Section>
  )
}

/** Of several, the one without a name is that of the default tier. */
const nameOf = (of: string, count: number) => (of || count < 2 ? of : "default tier")

function Changes({ entry: { differences, images, cause } }: { entry: HistoryEntry }) {
  const shown = differences.length > 0
  return (
    <>
      {shown
        ? differences.map(({ of, from, to, parts }) => (
            <div>
              {nameOf(of, differences.length) && <span class="dim">{nameOf(of, differences.length)}: </span>}
              {from && (
                <>
                  <Image image={from} /> →{" "}
                </>
              )}
              <Image image={to} /> <small class="dim">{parts.map(part => part.toLowerCase()).join(", ")}</small>
            </div>
          ))
        : images.map(({ of, image }) => (
            <div>
              {nameOf(of, images.length) && <span class="dim">{nameOf(of, images.length)}: </span>}
              <Image image={image} />
            </div>
          ))}
      {cause && <small class="dim">{cause}</small>}
    </>
  )
}
