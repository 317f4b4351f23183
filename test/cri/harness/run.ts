import { randomBytes } from "node:crypto"
import type { RuntimeFloor } from "./floor.ts"
import { Names } from "./normalise.ts"
import type { Script } from "./script.ts"

/** Runs one script and gives its transcript, line by line, without what no two runs share. */
export async function runScript(floor: RuntimeFloor, script: Script): Promise<string[]> {
  const id = randomBytes(3).toString("hex")
  const names = new Names([...floor.words, [id, "RUN"]])
  const lines: string[] = []
  const note = (what: string, value: unknown) => lines.push(...names.lines(what, value))
  await script.run({ ...floor, id, note })
  return lines
}
