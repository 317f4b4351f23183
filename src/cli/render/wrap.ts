/** The text in lines of at most so many columns, broken between words. A word that is longer stays whole. */
export function wrapped(text: string, columns: number): string[] {
  const lines: string[] = []
  let line = ""
  for (const word of text.split(" ")) {
    if (line !== "" && line.length + 1 + word.length > columns) {
      lines.push(line)
      line = word
    } else line = line === "" ? word : `${line} ${word}`
  }
  return [...lines, line]
}

/** Paragraphs, each broken by itself; lines that begin with blanks keep them, also where they are broken. */
export const wrappedText = (text: string, columns: number): string =>
  text
    .split("\n")
    .flatMap(line => {
      const [indent = ""] = /^ */.exec(line)!
      return wrapped(line.slice(indent.length), Math.max(20, columns - indent.length)).map(each => indent + each)
    })
    .join("\n")
