/** One thing that was measured, and what it may be at most: anything, where it is shown for comparison only. */
export type Figure = { name: string; measured: number; most: number | undefined; unit?: string; note?: string }

export const holds = ({ measured, most = Number.POSITIVE_INFINITY }: Figure): boolean => measured <= most

/** The figures as a table that shows at once which bound is missed. */
export function table(figures: readonly Figure[]): string {
  const rows = figures.map(figure => [
    figure.name,
    show(figure.measured, figure.unit),
    figure.most === undefined ? "" : `≤ ${show(figure.most, figure.unit)}`,
    figure.most === undefined ? "" : holds(figure) ? "holds" : "MISSED",
    figure.note ?? "",
  ])
  const all = [["figure", "measured", "bound", "verdict", ""], ...rows]
  const widths = all[0]!.map((_, column) => Math.max(...all.map(row => row[column]!.length)))
  return all.map(row => `${row.map((cell, at) => cell.padEnd(widths[at]!)).join("  ")}`.trimEnd()).join("\n")
}

/** Three digits say enough: the next run differs in the third. */
export function show(value: number, unit = ""): string {
  const digits = Number.isInteger(value) ? 0 : Math.abs(value) >= 100 ? 0 : Math.abs(value) >= 10 ? 1 : 2
  return `${value.toFixed(digits)}${unit && ` ${unit}`}`
}

/** The value below which this share of the samples lies. */
export function percentile(samples: readonly number[], share: number): number {
  const sorted = [...samples].sort((a, b) => a - b)
  return sorted[Math.min(sorted.length - 1, Math.ceil(share * sorted.length) - 1)] ?? Number.NaN
}
