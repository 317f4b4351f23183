import type { WorkloadRow } from "#web/wire.ts"
import { Image, ProgressCell } from "../../parts.tsx"

export function Summary({ row }: { row: WorkloadRow }) {
  return (
    <>
      <ProgressCell progress={row.progress} />
      <small class="clip">
        <Image image={row.images} />
      </small>
    </>
  )
}
