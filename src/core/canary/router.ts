import type { Canary } from "#api/v1alpha1/canary/index.ts"

/** How requests are divided between the source, which runs, and the target, which is to replace it. */
export type Split = {
  /** How many percent go to the target. Of matching requests, where requests are matched. */
  readonly weight: number
  /** Requests are also copied to the target, and its answers are dropped. */
  readonly isMirrored: boolean
}

/** What a route is made from. The word "primary" occurs in names of Services and nowhere else. */
export type RouteContext = {
  readonly canary: Canary
  /** Names of Services: the one that clients use, and those that select the pods of one revision each. */
  readonly services: { readonly apex: string; readonly source: string; readonly target: string }
  /** The values of the label that tells the pods of the revisions apart. */
  readonly hashes: { readonly source: string; readonly target?: string | undefined }
  /** The cookies of session affinity, as NAME=VALUE: of this run, and the one of an earlier run that clients drop. */
  readonly cookies?: {
    readonly target?: string | undefined
    readonly source?: string | undefined
    readonly previous?: string | undefined
  }
}

/** An object of Kubernetes as a router reads and writes it. */
export type RouteObject = {
  readonly apiVersion: string
  readonly kind: string
  readonly metadata: {
    readonly name: string
    readonly namespace?: string
    readonly generation?: number
    readonly resourceVersion?: string
    readonly [field: string]: unknown
  }
  readonly spec?: unknown
  readonly status?: unknown
}

export type Accepted = { readonly ok: true } | { readonly ok: false; readonly why: string }

/** A field that cannot be carried out, and what to write instead. */
export type RouteProblem = {
  readonly reason: "NotSupported" | "FeatureMissing" | "InvalidSpec" | "WeightNotPossible"
  readonly field: string
  readonly message: string
}

/**
 * What divides requests between two Services. Pure: a router says how its object is to be and reads what it says; the
 * controller reads and writes. One module each, so that another router is another file.
 */
export type Router = {
  /** The values of `spec.provider` that it serves. */
  readonly providers: readonly string[]
  /** The object that divides requests. */
  readonly kind: { readonly group: string; readonly version: string; readonly kind: string; readonly plural: string }
  /** Off, unless an administrator allows the provider. */
  readonly isOff?: true
  /** Fields of Flagger that most routers have no use for, and this one has. */
  readonly uses?: readonly string[]
  /** Fields that most routers use, and this one does not. */
  readonly unused?: readonly string[]
  nameOf(context: RouteContext): string
  /** What the spec asks for and this router cannot do. `features` is what the gateway says it supports, if it says so. */
  problemsOf(canary: Canary, features?: ReadonlySet<string>): readonly RouteProblem[]
  /** The object for this split, or the next stage on the way: what exists, with our own parts changed and foreign ones kept. */
  routed(context: RouteContext, existing: RouteObject | undefined, split: Split): RouteObject
  /** The split that the object says; undefined where our backends do not stand in it. */
  splitIn(context: RouteContext, existing: RouteObject): Split | undefined
  /** Requests pass to our backends, or back, in stages: each is accepted before the next is written. */
  isUnderWay?(context: RouteContext, existing: RouteObject): boolean
  /** What serves the object has taken it over as it is written. */
  isAccepted(context: RouteContext, existing: RouteObject): Accepted
  /** The object as it was before the Canary, or the next stage on the way; undefined where it is to be deleted. */
  restored(context: RouteContext, existing: RouteObject): RouteObject | undefined
}

export const isRouter = (found: Router | RouteProblem): found is Router => "routed" in found
