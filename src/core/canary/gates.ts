import { approvedAnnotation, approvedByAnnotation } from "#api/v1alpha1/canary/annotations.ts"
import type { Canary, Gate, HookType, Run, Webhook } from "#api/v1alpha1/canary/index.ts"
import { parseDuration } from "#lib/duration.ts"
import { earliest, formatInstant, type Instant, parseInstant } from "#lib/instant.ts"
import { parseApproval } from "../fleet/approval.ts"
import { phaseFor } from "./hook.ts"
import { plain } from "./plain.ts"
import { answerKey, type HookAsk, type Sight } from "./sight.ts"

/** A place at which a run waits for a yes: hooks of one type, and a person's where the spec asks for that. */
type Place = {
  readonly type: "confirm-rollout" | "confirm-traffic-increase" | "confirm-promotion"
  readonly approval: "Rollout" | "TrafficIncrease" | "Promotion"
  /** Which time: gates before each weight are passed for each weight. */
  readonly round: number
  readonly phase: string
}

export type Passage = {
  readonly is: "Open" | "Waiting" | "Expired"
  readonly run: Run
  readonly asks: readonly HookAsk[]
  readonly reason: "GateWaiting" | "AwaitingApproval" | "GateExpired"
  readonly message: string
  readonly lookAgainAt?: Instant | undefined
}

export const hooksOf = ({ spec }: Canary, type: HookType): readonly Webhook[] =>
  spec.analysis.webhooks.filter(hook => (hook.type || "rollout") === type)

/** Whether anything has to be passed there. */
export const hasGate = (canary: Canary, { type, approval }: Pick<Place, "type" | "approval">): boolean =>
  hooksOf(canary, type).length > 0 || canary.spec.requireApproval.includes(approval)

/** The word that an approval carries: those before a weight name the weight. */
const approvalWord = ({ approval, round }: Pick<Place, "approval" | "round">): string => wordOf(approval, round)

const wordOf = (name: string, round: number): string => (name === "TrafficIncrease" ? `${name}/${round}` : name)

/** The approvals that a run waits for, in the words that open them. */
export const awaitedApprovals = ({ gates }: Pick<Run, "gates">): string[] =>
  gates
    .filter(({ type, state }) => type === "approval" && state === "Waiting")
    .map(({ name, round }) => wordOf(name, round))

/**
 * Passes every gate of a place, or says which does not open. What was passed is kept in the run: the next process does not
 * ask again. A hook that said no is asked again after the interval.
 */
export function pass(sight: Sight, run: Run, place: Place, intervalMs: number): Passage {
  const { canary } = sight
  const names = [...new Set(hooksOf(canary, place.type).map(({ name }) => name))]
  const gates: Gate[] = names.map(name => afterHooks(sight, run, place, name, intervalMs))
  if (canary.spec.requireApproval.includes(place.approval)) gates.push(afterApproval(sight, run, place))
  const next = { ...run, gates: withGates(run.gates, gates) }
  const closed = gates.find(({ state }) => state === "Expired") ?? gates.find(({ state }) => state !== "Passed")
  const asks = gates.flatMap(gate => asksOf(sight, place, gate, intervalMs))
  const lookAgainAt = earliest(...gates.flatMap(gate => timesOf(sight, place, gate, intervalMs)))
  if (!closed) return { is: "Open", run: next, asks: [], reason: "GateWaiting", message: "" }
  const isApproval = closed.type === "approval"
  const reason = closed.state === "Expired" ? "GateExpired" : isApproval ? "AwaitingApproval" : "GateWaiting"
  const message = isApproval
    ? `waiting for approval (${approvalWord(place)}): run aim approve canary/${canary.metadata.name}${closed.message ? `; ${closed.message}` : ""}`
    : `hook ${closed.name} (${place.type})${closed.message ? `: ${closed.message}` : " has not answered yet"}`
  return {
    is: closed.state === "Expired" ? "Expired" : "Waiting",
    run: next,
    asks,
    reason,
    message: plain(message, 512),
    lookAgainAt,
  }
}

function withGates(before: readonly Gate[], now: readonly Gate[]): Gate[] {
  const isSame = (a: Gate, b: Gate) => a.type === b.type && a.name === b.name
  return [...before.filter(old => !now.some(gate => isSame(gate, old))), ...now]
}

const known = (run: Run, type: string, name: string, round: number) =>
  run.gates.find(gate => gate.type === type && gate.name === name && gate.round === round)

const fresh = (sight: Sight, type: Gate["type"], name: string, round: number): Gate => ({
  type,
  name,
  round,
  state: "Waiting",
  since: formatInstant(sight.now),
  attempts: 0,
})

/** Each attempt is a call of its own. */
const callRound = (round: number, attempts: number) => round * 10_000 + attempts

const ofName = (sight: Sight, { type }: Place, name: string) =>
  hooksOf(sight.canary, type).filter(hook => hook.name === name)

function afterHooks(sight: Sight, run: Run, place: Place, name: string, intervalMs: number): Gate {
  const gate = known(run, place.type, name, place.round) ?? fresh(sight, place.type, name, place.round)
  if (gate.state === "Passed" || gate.state === "Expired") return gate
  const hooks = ofName(sight, place, name)
  const round = callRound(place.round, gate.attempts)
  const answers = hooks.map(hook => sight.answers.get(answerKey({ hook, round })))
  const isDue = dueAt(gate, intervalMs) <= sight.now
  if (isDue && answers.every(answer => answer?.yes))
    return { ...gate, state: "Passed", at: formatInstant(sight.now), attempts: gate.attempts + 1 }
  const expiresAt = deadlineOf(sight, place, gate)
  if (expiresAt !== undefined && sight.now >= expiresAt) {
    const goesOn = hooks.every(({ onDeadline }) => onDeadline === "Continue")
    return { ...gate, state: goesOn ? "Passed" : "Expired", at: formatInstant(sight.now) }
  }
  const no = answers.find(answer => answer && !answer.yes)
  if (!isDue || !no || answers.includes(undefined)) return gate
  return {
    ...gate,
    state: "Refused",
    at: formatInstant(sight.now),
    attempts: gate.attempts + 1,
    message: plain(no.why, 160),
  }
}

/** When a hook that said no is asked again. */
const dueAt = ({ state, at }: Gate, intervalMs: number): Instant =>
  state === "Refused" ? (parseInstant(at) ?? 0) + intervalMs : 0

function deadlineOf(sight: Sight, place: Place, { name, since }: Gate): Instant | undefined {
  const deadlines = ofName(sight, place, name).map(({ deadline }) => (deadline ? parseDuration(deadline) : undefined))
  const ms = earliest(...deadlines)
  return ms === undefined ? undefined : (parseInstant(since) ?? 0) + ms
}

function asksOf(sight: Sight, place: Place, gate: Gate, intervalMs: number): HookAsk[] {
  if (gate.type === "approval" || gate.state === "Passed" || gate.state === "Expired") return []
  if (dueAt(gate, intervalMs) > sight.now) return []
  const round = callRound(place.round, gate.attempts)
  return ofName(sight, place, gate.name).map(hook => ({ hook, round, phase: phaseFor(place.type, place.phase) }))
}

function timesOf(sight: Sight, place: Place, gate: Gate, intervalMs: number): (Instant | undefined)[] {
  if (gate.type === "approval" || gate.state === "Passed" || gate.state === "Expired") return []
  const due = dueAt(gate, intervalMs)
  return [deadlineOf(sight, place, gate), due > sight.now ? due : undefined]
}

function afterApproval(sight: Sight, run: Run, place: Place): Gate {
  const gate =
    known(run, "approval", place.approval, place.round) ?? fresh(sight, "approval", place.approval, place.round)
  if (gate.state === "Passed") return gate
  const { annotations = {} } = sight.canary.metadata
  const approval = parseApproval(annotations[approvedAnnotation])
  if (!approval) return gate
  // An approval is for what the person saw: this run, this template and this gate.
  if (approval.operation !== run.id || approval.checksum !== run.checksum) {
    const message = plain(`an approval of run ${approval.operation} does not count`, 160)
    return { ...gate, reason: "ApprovalStale", message }
  }
  if (!approval.tiers.includes(approvalWord(place))) return gate
  const { message: _, ...rest } = gate
  const by = plain(annotations[approvedByAnnotation] ?? "", 253)
  return {
    ...rest,
    state: "Passed",
    at: formatInstant(sight.now),
    reason: "Approved",
    ...(by !== "" && { approvedBy: by }),
  }
}
