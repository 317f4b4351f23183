import { Inventory } from "#explain/inventory.ts"
import type { Instant } from "#lib/instant.ts"
import { collect, keep, type Piece, type Wanted } from "./collect.ts"
import { connectionOf, type Input, type World } from "./command.ts"
import { readDump } from "./dump-file.ts"

export type Sight = { inventory: Inventory; now: Instant }

/** The objects: of the dump that `--from` names, as of its time, or of the cluster now. */
export async function look(input: Input, world: World, wanted: Wanted = {}): Promise<Sight> {
  const from = input.options.from as string | undefined
  if (from !== undefined) {
    const { inventory, takenAt } = await readDump(from, world)
    return { inventory, now: takenAt }
  }
  const client = await world.connect(connectionOf(input))
  try {
    const inventory = new Inventory()
    for await (const piece of counted(collect(client, { ...wanted, signal: world.signal }), world))
      keep(inventory, piece)
    for (const [kind, message] of inventory.unreadable) world.say(`Not readable, and left out: ${kind} (${message})`)
    return { inventory, now: world.clock.now() }
  } finally {
    client.close()
  }
}

/** A large cluster takes a while: prints a line of progress now and then. */
export async function* counted(pieces: AsyncIterable<Piece>, { clock, say }: World): AsyncGenerator<Piece> {
  let objects = 0
  let saidAt = clock.now()
  for await (const piece of pieces) {
    if ("object" in piece) objects++
    if (clock.now() - saidAt >= 2000) {
      saidAt = clock.now()
      say(`reading the cluster: ${objects} objects so far`)
    }
    yield piece
  }
}
