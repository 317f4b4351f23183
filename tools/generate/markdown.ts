export const code = (text: string) => `\`${text}\``

export const table = (head: string[], rows: string[][]) =>
  [head, head.map(() => "---"), ...rows]
    .map(cells => `| ${cells.map(cell => cell.replaceAll("|", "\\|")).join(" | ")} |`)
    .join("\n")
