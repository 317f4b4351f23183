import type { PlainRow } from "#web/wire.ts"

export function Summary({ row: { cells } }: { row: PlainRow }) {
  return (
    <span class="clip">
      {cells.map(({ head, text }, at) => (
        <>
          {at > 0 && ", "}
          <span class="dim">{head.toLowerCase()}</span> {text}
        </>
      ))}
    </span>
  )
}
