import { nextPulls } from "#core/pulls/node-turns.ts"
import { earliest, formatInstant, type Instant, parseInstant } from "#lib/instant.ts"
import { freshState, isEnded, type TagState, type Wanted } from "./state.ts"

/** Everything a decision is made from. */
export type Snapshot = {
  readonly wanted: readonly Wanted[]
  readonly states: ReadonlyMap<string, TagState>
  readonly inFlight: ReadonlyMap<string, { readonly version: number; readonly namespace: string }>
  readonly pullsPerNode: number
  readonly publicKey: string
  readonly now: Instant
}

export type Plan = {
  /** Every image that is wanted, and how it stands with it now. */
  readonly states: ReadonlyMap<string, TagState>
  readonly starts: readonly Wanted[]
  /** Pulls that nothing wants any more, or that are wanted anew. */
  readonly cancels: readonly string[]
  readonly lookAgainAt?: Instant | undefined
}

/** Decides what the node pulls next. The same snapshot always gives the same plan. */
export function plan({ wanted, states: before, inFlight, pullsPerNode, publicKey, now }: Snapshot): Plan {
  const states = new Map(wanted.map(each => [each.id, stateOf(each, before, inFlight, publicKey)]))
  const versions = new Map(wanted.map(({ id, tag }) => [id, tag.version]))
  const cancels = [...inFlight].filter(([id, { version }]) => versions.get(id) !== version).map(([id]) => id)
  const open = wanted.filter(({ id }) => states.get(id)!.phase === "Waiting" && !inFlight.has(id))
  const candidates = open
    .filter(({ id, tag }) => (states.get(id)!.retryAt ?? now) <= now && canOpen({ tag }, publicKey))
    .map(each => ({
      id: each.id,
      each,
      namespace: each.tag.ownerReferences[0]?.namespace ?? "",
      priority: each.tag.priority,
      askedAt: parseInstant(each.tag.createdAt) ?? 0,
    }))
  const starts = nextPulls(candidates, [...inFlight.values()], pullsPerNode).map(({ each }) => each)
  for (const { id } of starts) {
    const { reason: _, message: __, retryAt: ___, ...state } = states.get(id)!
    states.set(id, { ...state, phase: "Pulling", startTime: state.startTime ?? formatInstant(now) })
  }
  const retries = open.flatMap(({ id }) => states.get(id)!.retryAt ?? []).filter(at => at > now)
  return { states, starts, cancels, lookAgainAt: earliest(...retries) }
}

function stateOf(
  wanted: Wanted,
  before: Snapshot["states"],
  inFlight: Snapshot["inFlight"],
  publicKey: string,
): TagState {
  const known = before.get(wanted.id)
  // What is known of an earlier version says nothing of this one.
  const state = known && known.version >= wanted.tag.version ? known : freshState(wanted)
  if (isEnded(state)) return state
  if (inFlight.get(wanted.id)?.version === wanted.tag.version) return { ...state, phase: "Pulling" }
  // A process that was killed during a pull left it behind as pulling.
  const waiting: TagState = { ...state, phase: "Waiting" }
  if (!canOpen(wanted, publicKey))
    return { ...waiting, reason: "Sealed", message: "the credentials were sealed for an agent that has ended" }
  return waiting.reason ? waiting : { ...waiting, reason: "WaitingForTurn" }
}

/** Without credentials, or with some that this agent can open. */
const canOpen = ({ tag }: Pick<Wanted, "tag">, publicKey: string) =>
  (tag.sealedCredentials ?? []).length === 0 || tag.sealedCredentials!.some(({ key }) => key === publicKey)
