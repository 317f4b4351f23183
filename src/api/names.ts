import { group, version } from "./v1alpha1/group.ts"

/** How a kind is called: plain data, so that a command reads it without loading the schema library. */
export type KindNames = {
  readonly group: string
  readonly version: string
  readonly kind: string
  readonly plural: string
  readonly scope: "Cluster" | "Namespaced"
  readonly shortNames: readonly string[]
}

/**
 * Every kind of ours, in the order in which they are shown. A kind is registered by a line here, and `npm run generate`
 * finds the rest in its folders (docs/decisions/0046).
 */
const registered = {
  ServiceImage: { plural: "serviceimages", scope: "Cluster", shortNames: ["si"] },
  AlternateImageSource: { plural: "alternateimagesources", scope: "Namespaced", shortNames: ["ais"] },
  ContainerRecreateRequest: { plural: "containerrecreaterequests", scope: "Namespaced", shortNames: ["crr"] },
  NodeImage: { plural: "nodeimages", scope: "Cluster", shortNames: ["nimg"] },
  ImagePullJob: { plural: "imagepulljobs", scope: "Namespaced", shortNames: ["ipj"] },
  ImageListPullJob: { plural: "imagelistpulljobs", scope: "Namespaced", shortNames: ["ilpj"] },
  Canary: { plural: "canaries", scope: "Namespaced", shortNames: ["cn"] },
  MetricTemplate: { plural: "metrictemplates", scope: "Namespaced", shortNames: ["mt"] },
  AlertProvider: { plural: "alertproviders", scope: "Namespaced", shortNames: ["ap"] },
} as const satisfies Record<string, Pick<KindNames, "plural" | "scope" | "shortNames">>

type Registered = typeof registered
export type KindPlural = Registered[keyof Registered]["plural"]

export const namesOf = (kind: keyof Registered): KindNames => ({ group, version, kind, ...registered[kind] })

export const kindNames: readonly KindNames[] = (Object.keys(registered) as (keyof Registered)[]).map(namesOf)
