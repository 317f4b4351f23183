import { Inventory, kindOf } from "#explain/inventory.ts"
import type { Reading } from "#explain/reading.ts"
import type { Instant } from "#lib/instant.ts"
import type { Client } from "#runtime/client/client.ts"
import type { Resource } from "#runtime/resource.ts"
import { collect, keep, type Piece } from "./collect.ts"
import { connectionOf, Failure, type Input, type World } from "./command.ts"
import { readDump } from "./dump-file.ts"
import { serverNow } from "./server-now.ts"

export type Sight = {
  inventory: Inventory
  now: Instant
  /** By the cluster's own clock, which wrote the times in a status. A cluster in a process may run faster than time. */
  serverNow: Instant
}

/** The objects: of the dump that `--from` names, as of its time, or of the cluster now. */
export async function look(
  input: Input,
  world: World,
  wanted: Reading | ((client: Client) => Promise<Reading>),
): Promise<Sight> {
  const from = input.options.from as string | undefined
  if (from !== undefined) {
    const { inventory, takenAt, serverTime = takenAt } = await readDump(from, world)
    return { inventory, now: takenAt, serverNow: serverTime }
  }
  const client = await world.connect(connectionOf(input))
  try {
    return await lookAt(client, world, typeof wanted === "function" ? await wanted(client) : wanted)
  } finally {
    client.close()
  }
}

/** The objects of a cluster now. Lists that may not be read are named. */
export async function lookAt(client: Client, world: World, wanted: Reading): Promise<Sight> {
  const inventory = new Inventory()
  const pieces = collect(client, [wanted], { seen: inventory, signal: world.signal })
  for await (const piece of counted(pieces, world)) keep(inventory, piece)
  for (const [kind, message] of inventory.unreadable) world.say(`Not readable, and left out: ${kind} (${message})`)
  return { inventory, now: world.clock.now(), serverNow: serverNow(client, world) }
}

/** Refuses where the list of a kind is missing: an older dump has fewer lists. */
export function demand(inventory: Inventory, resource: Resource): void {
  const missing = inventory.whyMissing(kindOf(resource))
  if (missing !== undefined) throw new Failure(`the dump has no ${resource.kind}s: ${missing}`)
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
