import type { SourceRow } from "#web/wire.ts"
import { counted, signs } from "../../words.ts"

export function Summary({ row: { containers, switched, incidents } }: { row: SourceRow }) {
  return (
    <>
      <span>
        {incidents > 0 ? (
          <b class="bad-text">
            <span aria-hidden="true">{signs.bad}</span> {counted(incidents, "incident")}
          </b>
        ) : (
          "no incident"
        )}
      </span>
      <small class="dim">
        {switched} of {counted(containers, "container")} from elsewhere
      </small>
    </>
  )
}
