import assert from "node:assert/strict"
import type { Controller, Reconciler } from "./controller.ts"

/**
 * Controllers of several kinds as one: one name, one queue, one share of the work. Keys in the queue have the name of the
 * part in front, and each part has only its own.
 */
export function joined(
  { name, concurrency, turns }: Pick<Controller, "name" | "concurrency" | "turns">,
  parts: readonly Controller[],
): Controller {
  return {
    name,
    ...(concurrency !== undefined && { concurrency }),
    ...(turns && { turns: { ...turns, of: key => turns.of(split(key).key) } }),
    permissions: parts.flatMap(({ permissions }) => permissions),
    setup(wiring) {
      const reconcilers = new Map(
        parts.map(({ name, setup }): [string, Reconciler] => [
          name,
          setup({
            ...wiring,
            enqueue: (key, options) => wiring.enqueue(`${name}/${key}`, options),
            enqueueAfter: (key, ms) => wiring.enqueueAfter(`${name}/${key}`, ms),
          }),
        ]),
      )
      const of = (part: string) => {
        const found = reconcilers.get(part)
        assert(found, `${part} is a part`)
        return found
      }
      return {
        reconcile(joint) {
          const { part, key } = split(joint)
          return of(part).reconcile(key)
        },
        warm(joint) {
          const { part, key } = split(joint)
          of(part).warm?.(key)
        },
        async drain() {
          await Promise.all([...reconcilers.values()].map(each => each.drain?.()))
        },
      }
    },
  }
}

function split(joint: string): { part: string; key: string } {
  const at = joint.indexOf("/")
  return { part: joint.slice(0, at), key: joint.slice(at + 1) }
}
