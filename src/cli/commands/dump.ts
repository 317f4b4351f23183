import { open } from "node:fs/promises"
import { Readable } from "node:stream"
import { pipeline } from "node:stream/promises"
import { collect, type Piece } from "../collect.ts"
import { connectionOf, Failure, type Run } from "../command.ts"
import { linesOf } from "../dump-file.ts"
import { ours } from "../kinds.ts"
import { counted } from "../look.ts"
import { explainedOf } from "../question.ts"

export const run: Run = async (input, world) => {
  const file = (input.options.output as string | undefined) ?? "-"
  const client = await world.connect(connectionOf(input))
  const tally = { objects: 0, missing: [] as string[] }
  try {
    const every = await Promise.all(ours.map(explainedOf))
    const readings = every.map(({ reading }) => reading({}))
    const pieces = tallied(counted(collect(client, readings, { signal: world.signal }), world), tally)
    const lines = linesOf(pieces, {
      takenAt: world.clock.now(),
      serverTime: () => client.serverTime?.(),
      by: `aim ${world.version}`,
    })
    if (file === "-") for await (const line of lines) await world.write(line)
    else await intoFile(file, lines)
  } finally {
    client.close()
  }
  for (const each of tally.missing) world.say(`Not readable, and left out: ${each}`)
  const where = file === "-" ? "" : ` into ${file}; to look at it: ${world.program} plan --from ${file}`
  return { text: "", exitCode: 0, next: `${tally.objects} objects${where}` }
}

async function* tallied(
  pieces: AsyncIterable<Piece>,
  tally: { objects: number; missing: string[] },
): AsyncGenerator<Piece> {
  for await (const piece of pieces) {
    if ("object" in piece) tally.objects++
    if ("failed" in piece) tally.missing.push(`${piece.failed.kind} (${piece.message})`)
    yield piece
  }
}

/** Readable by its owner only: a dump names every tenant. */
const mode = 0o600

async function intoFile(file: string, lines: AsyncIterable<string>): Promise<void> {
  try {
    const handle = await open(file, "w", mode)
    // The mode above applies to a new file only; an existing one keeps its own.
    if ((await handle.stat()).isFile()) await handle.chmod(mode)
    await pipeline(Readable.from(lines), handle.createWriteStream())
  } catch (error) {
    if ((error as NodeJS.ErrnoException).syscall) throw new Failure(`${file}: ${(error as Error).message}`)
    throw error
  }
}
