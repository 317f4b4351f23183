import { globSync, readFileSync } from "node:fs"
import { type GeneratedFile, inRepository, withSections } from "./file.ts"
import { table } from "./markdown.ts"

export type DecisionRecord = { file: string; number: number; title: string; date: string; status: string }

/** The index of docs/decisions. Each record states its own title, date and status. */
export function decisionIndex(): GeneratedFile {
  const path = inRepository("docs/decisions/README.md")
  const records = globSync("[0-9]*.md", { cwd: inRepository("docs/decisions") })
    .sort()
    .map(file => readRecord(file, readFileSync(inRepository(`docs/decisions/${file}`), "utf8")))
  return { path, content: withSections(readFileSync(path, "utf8"), { index: indexOf(records) }) }
}

export const indexOf = (records: readonly DecisionRecord[]): string =>
  table(
    ["No.", "Decision", "Date", "Status"],
    records.map(({ file, number, title, date, status }) => [`${number}`, `[${title}](${file})`, date, status]),
  )

/** The head of a record. Throws on a record without a title, a date or a status, or with the number of another file. */
export function readRecord(file: string, text: string): DecisionRecord {
  const head =
    /^# (\d+)[.] (.+)\n\nDate: (\d{4}-\d{2}-\d{2})[.] Status: ((?:accepted|superseded|withdrawn).*)[.]\n\n/.exec(text)
  const [, number, title, date, status] = head ?? []
  if (!title || !date || !status || Number(number) !== Number.parseInt(file, 10))
    throw new Error(
      `docs/decisions/${file}: begin with "# ${Number.parseInt(file, 10)}. TITLE", an empty line, and "Date: YYYY-MM-DD. Status: accepted."`,
    )
  return { file, number: Number(number), title, date, status }
}
