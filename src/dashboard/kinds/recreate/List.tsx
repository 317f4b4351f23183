import type { RecreateRow } from "#web/wire.ts"

export function Summary({ row: { containers, pod, node } }: { row: RecreateRow }) {
  return (
    <>
      <span class="clip">
        {containers.join(", ")} of {pod}
      </span>
      <small class="dim">{node && `on ${node}`}</small>
    </>
  )
}
