import { stripVTControlCharacters } from "node:util"

/** How many columns it takes; colours take none. */
const widthOf = (text: string) => stripVTControlCharacters(text).length

/** The text in lines of at most so many columns, broken between words. A word that is longer stays whole. */
export function wrapped(text: string, columns: number): string[] {
  const lines: string[] = []
  let line = ""
  for (const word of text.split(" ")) {
    if (line !== "" && widthOf(line) + 1 + widthOf(word) > columns) {
      lines.push(line)
      line = word
    } else line = line === "" ? word : `${line} ${word}`
  }
  return [...lines, line]
}

/** Each line broken by itself. One that begins with blanks keeps them where it is broken, and `hanging` more. */
export const wrappedText = (text: string, columns: number, hanging = 0): string =>
  text
    .split("\n")
    .flatMap(line => {
      if (widthOf(line) <= columns) return [line]
      const [indent = ""] = /^ */.exec(line)!
      const [first = "", ...rest] = wrapped(line.slice(indent.length), Math.max(20, columns - indent.length - hanging))
      return [indent + first, ...rest.map(each => indent + " ".repeat(hanging) + each)]
    })
    .join("\n")

/** Never so wide that a line is hard to follow. */
export const readableWidth = (columns: number) => Math.max(40, Math.min(columns, 110))

/** Two columns; a right side that is too long continues below itself. */
export function twoColumns(rows: readonly (readonly [left: string, right: string])[], columns: number): string {
  const width = Math.max(...rows.map(([left]) => widthOf(left)))
  // A very long left side would leave no room for the right one: it gets its own line.
  const limit = Math.min(width, Math.max(24, Math.floor(columns * 0.45)))
  const indent = " ".repeat(limit + 3)
  return rows
    .map(([left, right]) => {
      const [first = "", ...rest] = wrapped(right, Math.max(20, columns - indent.length))
      const begin = widthOf(left) > limit ? `${left}\n${indent}` : `${left}${" ".repeat(limit - widthOf(left))}   `
      return [begin + first, ...rest.map(line => indent + line)].join("\n")
    })
    .join("\n")
}
