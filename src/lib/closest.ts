/** The candidate that `word` is probably a misspelling of, if there is one. */
export function closest(word: string, candidates: readonly string[]): string | undefined {
  let best: { candidate: string; distance: number } | undefined
  for (const candidate of candidates) {
    const distance = editDistance(word.toLowerCase(), candidate.toLowerCase())
    // Up to a third of wrong letters is a misspelling; more is another word. The first three letters count as an abbreviation.
    const isNear =
      distance <= Math.max(1, Math.floor(candidate.length / 3)) || (word.length >= 3 && candidate.startsWith(word))
    if (isNear && (!best || distance < best.distance)) best = { candidate, distance }
  }
  return best?.candidate
}

/** Insertions, deletions, replacements and swaps of neighbours (optimal string alignment). */
export function editDistance(left: string, right: string): number {
  let beforeLast: number[] = []
  let last = Array.from({ length: right.length + 1 }, (_, i) => i)
  for (let i = 1; i <= left.length; i++) {
    const row = [i]
    for (let j = 1; j <= right.length; j++) {
      const same = left[i - 1] === right[j - 1]
      row[j] = Math.min(last[j]! + 1, row[j - 1]! + 1, last[j - 1]! + (same ? 0 : 1))
      if (i > 1 && j > 1 && left[i - 1] === right[j - 2] && left[i - 2] === right[j - 1])
        row[j] = Math.min(row[j]!, beforeLast[j - 2]! + 1)
    }
    beforeLast = last
    last = row
  }
  return last[right.length]!
}
