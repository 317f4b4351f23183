import { parseInstant } from "#lib/instant.ts"
import { clip, printable } from "#lib/text.ts"

/** What others wrote, bounded and made safe for the eye. Anything that is no text is shown as nothing. */
export const shown = (text: unknown, most = 512): string =>
  typeof text === "string" ? clip(printable(text), most) : typeof text === "number" ? String(text) : ""

/** The lines of a sentence of ours that may quote others. */
export const shownLines = (text: string, most = 2048): string[] =>
  text
    .split("\n")
    .map(line => shown(line, most))
    .filter(line => line !== "")

/** A part of a message: absent where there is no time. */
export const timed = <K extends string>(name: K, time: string | undefined): { [key in K]?: number } => {
  const at = parseInstant(time)
  return (at === undefined ? {} : { [name]: at }) as { [key in K]?: number }
}
