/** What differs between two texts, line by line, with the steps it belongs to: `-` is the first one's. */
export function difference(first: string[], second: string[], context = 1): string[] {
  let start = 0
  while (start < Math.min(first.length, second.length) && first[start] === second[start]) start++
  let end = 0
  while (
    end < Math.min(first.length, second.length) - start &&
    first[first.length - 1 - end] === second[second.length - 1 - end]
  )
    end++
  const changes = middle(first.slice(start, first.length - end), second.slice(start, second.length - end))
  const all = [
    ...first.slice(0, start).map(line => `  ${line}`),
    ...changes,
    ...first.slice(first.length - end).map(line => `  ${line}`),
  ]
  return withContext(all, context)
}

/** Longest common subsequence, plainly: transcripts have some hundred lines. */
function middle(first: string[], second: string[]): string[] {
  const width = second.length + 1
  const common = new Uint16Array((first.length + 1) * width)
  const at = (row: number, column: number) => common[row * width + column] as number
  for (let row = first.length - 1; row >= 0; row--)
    for (let column = second.length - 1; column >= 0; column--)
      common[row * width + column] =
        first[row] === second[column] ? at(row + 1, column + 1) + 1 : Math.max(at(row + 1, column), at(row, column + 1))
  const lines: string[] = []
  let row = 0
  let column = 0
  while (row < first.length || column < second.length) {
    if (row < first.length && column < second.length && first[row] === second[column]) {
      lines.push(`  ${first[row]}`)
      row++
      column++
    } else if (column >= second.length || (row < first.length && at(row + 1, column) >= at(row, column + 1)))
      lines.push(`- ${first[row++]}`)
    else lines.push(`+ ${second[column++]}`)
  }
  return lines
}

function withContext(lines: string[], context: number): string[] {
  const isChange = (line: string | undefined) => line?.[0] === "-" || line?.[0] === "+"
  const kept = new Set<number>()
  lines.forEach((line, index) => {
    if (!isChange(line)) return
    for (let near = index - context; near <= index + context; near++) kept.add(near)
    let step = index
    while (step > 0 && !lines[step]?.startsWith("  »")) step--
    kept.add(step)
  })
  return lines.filter((_, index) => kept.has(index))
}
