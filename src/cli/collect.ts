import { Inventory, kindOf } from "#explain/inventory.ts"
import type { ListOf, Reading } from "#explain/reading.ts"
import { cutTarget } from "#explain/serviceimage/needed.ts"
import { cut } from "#explain/shapes.ts"
import { both } from "#lib/shape.ts"
import type { Client } from "#runtime/client/client.ts"
import { isFailure } from "#runtime/client/errors.ts"
import { pagesOf } from "#runtime/client/list-all.ts"
import { type KubeObject, type Resource, resourceName } from "#runtime/resource.ts"

/** One step of reading a cluster: a list begins, an object of it, or a list that may not be read. */
export type Piece =
  | { list: { apiVersion: string; kind: string } }
  | { object: KubeObject }
  | { failed: { apiVersion: string; kind: string }; message: string }

/**
 * Reads only what explanations need from a cluster, page by page, so that the number of objects is not limited. The lists
 * that decide what else is read are kept in `seen`.
 */
export async function* collect(
  client: Client,
  readings: readonly Reading[],
  { seen = new Inventory(), signal }: { seen?: Inventory; signal?: AbortSignal } = {},
): AsyncGenerator<Piece> {
  async function* first(list: ListOf, isVital = false): AsyncGenerator<Piece> {
    for await (const piece of read(client, list, { isVital, signal })) {
      keep(seen, piece)
      yield piece
    }
  }
  const isMissing = ({ own }: Reading) => seen.whyMissing(kindOf(own.resource)) !== undefined
  // A cluster may lack some of our kinds. The first one is read last: where none can be read, its error stands.
  for (const [index, reading] of [...readings.entries()].reverse()) {
    yield* first(reading.own, index === 0 && readings.slice(1).every(isMissing))
    for (const list of reading.first ?? []) yield* first(list)
  }
  const lists = readings.flatMap(({ rest }) => rest?.(seen) ?? [])
  // A list that is read once more replaces what was read first, and so must keep as much.
  const again = readings
    .flatMap(({ own, first = [] }) => [own, ...first])
    .filter(({ resource }) => lists.some(list => idOf(list.resource) === idOf(resource)))
  for (const list of joined([...lists, ...again])) yield* read(client, list, { signal })
}

export function keep(inventory: Inventory, piece: Piece): void {
  if ("list" in piece) inventory.list(piece.list)
  else if ("failed" in piece) inventory.fail(piece.failed, piece.message)
  else inventory.add(piece.object)
}

const idOf = (resource: Resource) => `${resourceName(resource)}/${resource.version}`

/** Each kind is read once, with everything that is needed of it. */
const joined = (lists: readonly ListOf[]): ListOf[] => [
  ...Map.groupBy(lists, ({ resource }) => idOf(resource))
    .values()
    .map(join),
]

function join(same: readonly ListOf[]): ListOf {
  const { resource, options } = same[0]!
  const targets = same.flatMap(each => each.targets ?? [])
  const { namespace, fieldSelector, labelSelector } = options ?? {}
  const areAlike = (name: "fieldSelector" | "labelSelector") =>
    options?.[name] !== undefined && same.every(each => each.options?.[name] === options[name])
  return {
    resource,
    shape: same.map(({ shape }) => shape).reduce(both),
    ...(targets.length > 0 && { targets }),
    options: {
      namespace,
      ...(areAlike("fieldSelector") && { fieldSelector }),
      ...(areAlike("labelSelector") && { labelSelector }),
      ...(same.every(each => each.options?.metadataOnly) && { metadataOnly: true }),
    },
  }
}

/** Without a vital list there is no answer; without another one there is a partial answer. */
async function* read(
  client: Client,
  { resource, options, shape, targets }: ListOf,
  { isVital = false, signal }: { isVital?: boolean; signal?: AbortSignal | undefined },
): AsyncGenerator<Piece> {
  const kind = kindOf(resource)
  const cutDown = targets ? cutTarget(targets, shape) : cut(shape)
  let isBegun = false
  try {
    for await (const { items } of pagesOf(client, resource, options, signal)) {
      if (!isBegun) yield { list: kind }
      isBegun = true
      for (const object of items) yield { object: cutDown({ ...object, ...kind }) }
    }
  } catch (error) {
    if (isVital || isBegun || !isFailure(error, "Forbidden", "NotFound")) throw error
    yield { failed: kind, message: error.message }
  }
}
