import { readAllowances } from "#egress/index.ts"
import { type Seen, unreachable } from "./usable.ts"

/** What is seen of an object whose Secret has these keys, where an administrator allows these places. */
export const seenWith = <O extends { metadata: { namespace?: string } }>(
  object: O,
  { keys, allow = [] }: { keys?: Record<string, string> | undefined; allow?: readonly string[] | undefined } = {},
): Seen<O> => ({
  object,
  ...(keys && {
    secret: { ok: true, keys: new Map(Object.entries(keys).map(([key, text]) => [key, Buffer.from(text)])) },
  }),
  unreachable: address => unreachable(object.metadata.namespace ?? "", address, readAllowances(allow)),
})
