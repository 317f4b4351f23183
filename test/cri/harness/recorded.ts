import { readFileSync, writeFileSync } from "node:fs"
import { join } from "node:path"

/** Transcripts by the name of their script. */
export type Recorded = Map<string, string[]>

const file = (name: string) => join(import.meta.dirname, "../recorded", `${name}.txt`)

export function readRecorded(name: string): Recorded {
  const sections = readFileSync(file(name), "utf8").split(/^# /m).slice(1)
  return new Map(
    sections.map(section => {
      const [title = "", ...lines] = section.trim().split("\n")
      return [title, lines]
    }),
  )
}

export function writeRecorded(name: string, recorded: Recorded): void {
  const sections = [...recorded].map(([title, lines]) => `# ${title}\n${lines.join("\n")}\n`)
  writeFileSync(file(name), sections.join("\n"))
}
