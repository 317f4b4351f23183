import type { RolloutRow } from "#web/wire.ts"
import { Image, ProgressCell } from "../../parts.tsx"
import { toneOf } from "../../words.ts"

export function Summary({ row }: { row: RolloutRow }) {
  return (
    <>
      <ProgressCell progress={row.progress} tone={row.state === "Halted" ? toneOf(row.state) : "good"} />
      <small class="clip">
        <Image image={row.image} />
      </small>
    </>
  )
}
