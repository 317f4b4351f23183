import type { ComponentChildren } from "preact"
import { useId, useState } from "preact/hooks"
import type { ConditionShown, FeedHead, Progress, Rate } from "#web/wire.ts"
import { type Address, formatAddress } from "./address.ts"
import { useSurroundings } from "./surroundings.tsx"
import { ago, grouped, imageParts, lasting, signs, spaced, type Tone, toneOf, until } from "./words.ts"

/** A state in a word, with a sign of its own: colour is never all that tells. */
export function State({ state, tone = toneOf(state) }: { state: string; tone?: Tone }) {
  return (
    <span class={`state ${tone}`}>
      <span class="sign" aria-hidden="true">
        {signs[tone]}
      </span>
      {spaced(state)}
    </span>
  )
}

/** A link to another view: an address that can be copied, opened in a tab, or followed here. */
export function To(props: { address: Address; class?: string; children: ComponentChildren; current?: boolean }) {
  const { go } = useSurroundings()
  const follow = (event: MouseEvent) => {
    if (event.ctrlKey || event.metaKey || event.shiftKey || event.button !== 0) return
    event.preventDefault()
    go(props.address, true)
  }
  return (
    <a
      href={formatAddress(props.address)}
      class={props.class}
      onClick={follow}
      aria-current={props.current ? "true" : undefined}
    >
      {props.children}
    </a>
  )
}

/** A reference with what differs most at the front of the eye: the tag. */
export function Image({ image }: { image: string }) {
  if (image === "") return <span class="dim">no image</span>
  const { repository, tag, digest } = imageParts(image)
  const slash = repository.lastIndexOf("/") + 1
  return (
    <span class="image" title={image}>
      <span class="dim">{repository.slice(0, slash)}</span>
      <span class="leaf">
        {repository.slice(slash)}
        {tag && <b>:{tag}</b>}
      </span>
      {digest && <span class="dim">@{digest}</span>}
    </span>
  )
}

export type BarPart = { share: number; tone: Tone }

/** A bar of parts in percent. What it shows stands beside it in words, so it is hidden from readers of the screen. */
export function Bar({ parts, ticks = [] }: { parts: BarPart[]; ticks?: number[] }) {
  return (
    <span class="bar" aria-hidden="true">
      {parts.map(({ share, tone }) => share > 0 && <span class={`part ${tone}`} style={{ inlineSize: `${share}%` }} />)}
      {ticks.map(percent => percent < 100 && <span class="tick" style={{ insetInlineStart: `${percent}%` }} />)}
    </span>
  )
}

export function ProgressCell({ progress, tone = "good" }: { progress: Progress; tone?: Tone }) {
  const { done, total, rate } = progress
  return (
    <span class="progress">
      <Bar parts={[{ share: total === 0 ? 0 : (done / total) * 100, tone }]} />
      <span class="numbers">
        {grouped(done)}/{grouped(total)}
      </span>
      <RateWords rate={rate} />
    </span>
  )
}

function RateWords({ rate }: { rate?: Rate | undefined }) {
  if (!rate) return null
  return <span class="dim rate">{[rate.words, rate.leftWords].filter(Boolean).join(", ")}</span>
}

/** Time that goes on while one looks at it. */
export function Ago({ at }: { at: number | undefined }) {
  const { now } = useSurroundings()
  return <>{ago(at, now.value)}</>
}
export function Lasting({ from, to }: { from: number | undefined; to?: number | undefined }) {
  const { now } = useSurroundings()
  return <>{lasting(from, to ?? now.value)}</>
}
export function Until({ at }: { at: number }) {
  const { now } = useSurroundings()
  return <>{until(at, now.value)}</>
}

export function Section(props: {
  title: string
  note?: ComponentChildren
  children: ComponentChildren
  class?: string
}) {
  const id = useId()
  return (
    <section class={`section ${props.class ?? ""}`} aria-labelledby={id}>
      <header>
        <h2 id={id}>{props.title}</h2>
        {props.note && <span class="dim">{props.note}</span>}
      </header>
      {props.children}
    </section>
  )
}

export type Column<T> = { head: string; cell: (item: T) => ComponentChildren; class?: string }

/** A plain table; on a narrow screen each cell has its heading beside it. */
export function Table<T>(props: { label: string; columns: Column<T>[]; items: readonly T[]; empty: string }) {
  const { label, columns, items, empty } = props
  if (items.length === 0) return <p class="empty">{empty}</p>
  return (
    <div class="scroll" role="group" aria-label={label} tabIndex={0}>
      <table class="plain">
        <thead>
          <tr>
            {columns.map(({ head }) => (
              <th scope="col">{head}</th>
            ))}
          </tr>
        </thead>
        <tbody>
          {items.map(item => (
            <tr>
              {columns.map(column => (
                <td class={column.class}>{column.cell(item)}</td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  )
}

export function Conditions({ conditions }: { conditions: readonly ConditionShown[] }) {
  return (
    <Section title="Conditions">
      <Table
        label="Conditions"
        empty="No condition was reported."
        items={conditions}
        columns={[
          { head: "Type", cell: ({ type }) => <b>{type}</b> },
          { head: "Status", cell: ({ status }) => status },
          { head: "Reason", cell: ({ reason }) => reason },
          { head: "Message", cell: ({ message }) => message, class: "words" },
          { head: "Since", cell: ({ since }) => <Ago at={since} />, class: "time" },
        ]}
      />
    </Section>
  )
}

/** A command that can be taken to a terminal. */
export function Command({ command }: { command: string }) {
  const [isCopied, setCopied] = useState(false)
  const copy = () => navigator.clipboard.writeText(command).then(() => setCopied(true))
  return (
    <span class="command">
      <code>{command}</code>
      <button type="button" class="small" onClick={() => void copy()} aria-label={`Copy ${command}`}>
        {isCopied ? "Copied" : "Copy"}
      </button>
    </span>
  )
}

/** What is wrong with a feed, and what a viewer does not see. */
export function HeadNotes({ head }: { head: FeedHead | undefined }) {
  if (!head) return null
  const { problem, scopeMessage, isDeleted } = head
  return (
    <>
      {isDeleted && <p class="notice warn">It was deleted. This is its last state.</p>}
      {problem && (
        <div class="notice bad" role="alert">
          <p>{problem.message}</p>
          {problem.meant && <p>Did you mean {problem.meant}?</p>}
          {problem.command && <Command command={problem.command} />}
        </div>
      )}
      {scopeMessage && <p class="notice calm">{scopeMessage}</p>}
    </>
  )
}
