import type { Instant } from "#lib/instant.ts"
import { type Held, hold, type KindController } from "#runtime/kind-controller.ts"
import { keyOf } from "#runtime/resource.ts"
import type { WithStatus } from "#runtime/status.ts"
import type { Explained } from "./explained.ts"
import { explanationOf, ownList } from "./plain.ts"
import type { ListOf } from "./reading.ts"
import { stillWiring } from "./still.ts"

type Timed = { readonly lookAgainAt?: Instant | undefined }

type How<Plan> = {
  /** The vocabulary of the kind. */
  reasons: Readonly<Record<string, string>>
  /** The lists that the controller watches beside its own objects, with what it reads of them. */
  beside?: readonly ListOf[]
  /** What a plan writes, a phrase for each object. */
  next(plan: Plan): string[]
}

/**
 * Explains a kind by its own controller: `open`, `observe`, `plan` and `report` run on what was read, and nothing is
 * written.
 */
export const explainKind = <O extends WithStatus, World, Memory, Seen, Plan extends Timed, Done extends Timed>(
  kind: KindController<O, World, Memory, Seen, Plan, Done>,
  { reasons, beside = [], next }: How<Plan>,
): Explained => ({
  reading: ({ namespace }) => ({
    own: ownList(kind.resource, namespace),
    rest: () =>
      beside.map(list => (list.resource.namespaced ? { ...list, options: { ...list.options, namespace } } : list)),
  }),
  explainer({ inventory, now }) {
    const { resource, indexes } = kind
    const wiring = stillWiring(inventory, now)
    const objects = wiring.watch<Held<O>>(resource, { project: hold, ...(indexes && { indexes }) })
    const world = kind.open(wiring, objects)
    return async read => {
      const object = read as O
      const key = keyOf(object.metadata)
      await kind.prepare?.(world, key)
      const seen = kind.observe(world, { key, object, memory: kind.remember?.() as Memory, now })
      const plan = kind.plan(seen)
      const status = kind.report?.(seen, plan, undefined, now)?.status ?? object.status
      return { ...explanationOf({ ...read, status }, reasons), next: next(plan), lookAgainAt: plan.lookAgainAt }
    }
  },
})
