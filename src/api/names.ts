import { alternateImageSourceNames } from "./v1alpha1/alternateimagesource/names.ts"
import { serviceImageNames } from "./v1alpha1/serviceimage/names.ts"

/** How a kind is called: plain data, so that a command reads it without loading the schema library. */
export type KindNames = {
  readonly group: string
  readonly version: string
  readonly kind: string
  readonly plural: string
  readonly scope: "Cluster" | "Namespaced"
  readonly shortNames: readonly string[]
}

/** Every kind of ours, in the order in which they are shown. A kind is registered here. */
export const kindNames: readonly KindNames[] = [serviceImageNames, alternateImageSourceNames]
