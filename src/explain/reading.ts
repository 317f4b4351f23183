import type { Target } from "#api/v1alpha1/serviceimage/index.ts"
import type { Shape } from "#lib/shape.ts"
import type { ListOptions } from "#runtime/client/client.ts"
import type { Resource } from "#runtime/resource.ts"
import type { Inventory } from "./inventory.ts"

/** One list of a cluster, and what is kept of its objects. */
export type ListOf = {
  resource: Resource
  options?: ListOptions
  shape: Shape
  /** Each of these reads the objects in its own way. */
  targets?: readonly Target[]
}

/** What the explanations of a kind are made from. A dump holds this and nothing else. */
export type Reading = {
  /** The objects of the kind itself. */
  own: ListOf
  /** Other lists that decide what else is read. */
  first?: readonly ListOf[]
  /** Everything else, once those lists are known. */
  rest?(seen: Inventory): readonly ListOf[]
}
