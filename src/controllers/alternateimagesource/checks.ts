import { type Reason, stuck } from "#api/v1alpha1/alternateimagesource/index.ts"
import type { Decision } from "./group.ts"

/** What is known about a source, once its containers have been decided about. */
export type SourceFacts = {
  /** Decisions about containers that cannot be pulled, and the gravest of them. */
  readonly troubled: readonly Decision[]
  readonly worst: Decision | undefined
  /** Sent to another repository, and crashing there. */
  readonly crashing: readonly Decision[]
  /** Targets that are not in the namespace. */
  readonly missing: readonly string[]
  /** How many containers an older source has. */
  readonly claimed: number
  /** Why replacements of the spec cannot help. */
  readonly useless: readonly string[]
  /** Containers that are pulled from elsewhere, with the repository. */
  readonly elsewhere: readonly string[]
  /** Of these: those that stay there after their incident is over, until their pods are made anew. */
  readonly staying: number
  /** How many containers the source looks after. */
  readonly total: number
}

type Check = { readonly name: string; applies(facts: SourceFacts): boolean }

/**
 * What there is to say about a source, in order. The first check that applies is the reason of its Ready condition, and
 * the one that `aim why` names. A new rule is an entry here, and words for it in report.ts. Without any of these the
 * source only watches.
 */
export const checks = [
  { name: "stuck", applies: ({ worst }) => worst !== undefined && needsPerson(worst.reason) },
  { name: "useless", applies: ({ useless }) => useless.length > 0 },
  { name: "troubled", applies: ({ worst }) => worst !== undefined },
  { name: "crashing", applies: ({ crashing }) => crashing.length > 0 },
  { name: "missing", applies: ({ missing }) => missing.length > 0 },
  { name: "claimed", applies: ({ claimed }) => claimed > 0 },
  { name: "elsewhere", applies: ({ elsewhere }) => elsewhere.length > 0 },
] as const satisfies readonly Check[]

export type CheckName = (typeof checks)[number]["name"]

export const checkOn = (facts: SourceFacts): CheckName | undefined => checks.find(check => check.applies(facts))?.name

const persons = new Set<Reason>(stuck)
export const needsPerson = (reason: Reason) => persons.has(reason)
