import type { NodeImage } from "#api/v1alpha1/nodeimage/index.ts"
import type { Look } from "#runtime/kind-controller.ts"
import type { Snapshot } from "./plan.ts"
import { wantedBy } from "./state.ts"
import type { World } from "./world.ts"

/** Everything the plan is made from. */
export const observe = (
  { book, flights, key, pullsPerNode }: World,
  { object, now }: Look<NodeImage, undefined>,
): Snapshot => ({
  wanted: wantedBy(object),
  states: book.statesOf(object),
  inFlight: flights.all,
  pullsPerNode,
  publicKey: key.publicKey,
  now,
})
