/** What others wrote, as a status may carry it: printable ASCII without marks that a page or a shell could read, cut. */
export function plain(text: string, length: number): string {
  const shown = text
    .replaceAll(/["<>&\\]/g, "'")
    .replaceAll(/[^ -~]+/g, " ")
    .trim()
  return shown.length <= length ? shown : `${shown.slice(0, length - 3)}...`
}
