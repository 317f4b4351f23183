/** Rows drawn beyond the edge, so that a quick scroll meets no gap. */
const beyond = 8

/** Of `count` rows, which to draw: from `first` to before `last`. */
export function windowOf(seen: { count: number; height: number; top: number; size: number }) {
  const { count, height, top, size } = seen
  const first = Math.max(0, Math.min(count, Math.floor(top / height) - beyond))
  const last = Math.max(first, Math.min(count, Math.ceil((top + size) / height) + beyond))
  return { first, last }
}
