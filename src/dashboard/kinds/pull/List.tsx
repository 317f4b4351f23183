import type { PullRow } from "#web/wire.ts"
import { Image, ProgressCell } from "../../parts.tsx"

export function Summary({ row }: { row: PullRow }) {
  return (
    <>
      <ProgressCell progress={row.progress} />
      <small class="clip">
        {row.image && <Image image={row.image} />}
        <span class="dim">
          {row.fetched && ` ${row.fetched}`}
          {row.failed > 0 && ` ${row.failed} failed`}
        </span>
      </small>
    </>
  )
}
