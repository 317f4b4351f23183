/** At most `length` characters, the last one an ellipsis where something was cut. Never half a character. */
export const clip = (text: string, length: number) =>
  text.length <= length ? text : `${text.slice(0, length - 1).toWellFormed()}…`

/**
 * What others wrote, made safe for a terminal and for the eye: without control characters, and without what has no
 * shape of its own but moves, reverses or hides what stands beside it (Unicode's format characters and separators).
 */
export const withoutControls = (text: string, instead: string) =>
  text.replaceAll(/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/gu, instead)

/** Text from other writers, made safe for a terminal and for a page. */
export const printable = (text: string) => withoutControls(text, "\ufffd")

/** At most `length` characters, an ellipsis in the middle where text was cut: the end is often the most useful part. */
export function clipMiddle(text: string, length: number): string {
  if (text.length <= length) return text
  const front = Math.floor((length - 1) / 3)
  return `${text.slice(0, front).toWellFormed()}…${text.slice(text.length - (length - 1 - front)).toWellFormed()}`
}

/** `1 pod`, `2 pods`. */
export const counted = (count: number, noun: string) => `${count} ${noun}${count === 1 ? "" : "s"}`

/** `a, b and 3 more`: a few names and how many are left. */
export function nameSome(names: readonly string[], total: number): string {
  const more = total - names.length
  return more > 0 ? `${names.join(", ")} and ${more} more` : names.join(", ")
}

/** With a capital letter and a full stop. A name or a path at its beginning stays as it is. */
export function sentence(text: string): string {
  const first = /^[a-z]+(?=[ ,]|$)/.test(text) ? text.charAt(0).toUpperCase() + text.slice(1) : text
  return /[.?!]$/.test(first) ? first : `${first}.`
}
