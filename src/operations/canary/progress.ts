import type { Canary, EndedRun, Gate, MetricStatus, Phase } from "#api/v1alpha1/canary/index.ts"
import { shareOf } from "#explain/canary/share.ts"
import { type Standing, standingOf } from "#runtime/standing.ts"

/** The facts about one Canary that are shown and that `aim wait` decides by. Derived from the object alone. */
export type Progress = {
  name: string
  namespace: string
  /** Of the last generation; NotSeenYet where no controller has observed it. */
  state: Standing["state"]
  phase: Phase | "NotSeenYet"
  reason: string
  message: string
  target: string
  weight: number
  weightSince: string | undefined
  isMirrored: boolean
  failedChecks: number
  threshold: number
  run: RunShown | undefined
  history: readonly EndedRun[]
}

export type RunShown = {
  id: string
  startedAt: string
  source: Side
  target: Side
  full: number
  next: number | undefined
  iterations: number
  metrics: readonly MetricStatus[]
  /** Gates that have not opened. */
  waits: readonly Gate[]
}

type Side = { hash: string; image: string; pods: number }

/** As it comes from the server: the status, or parts of it, may be missing. */
export type SeenCanary = Omit<Canary, "status"> & { status?: Partial<Canary["status"]> | undefined }

export function progressOf(object: SeenCanary): Progress {
  const { metadata, spec } = object
  const status = (object.status ?? {}) as Partial<NonNullable<Canary["status"]>>
  const { state, reason, message } = standingOf(object as Parameters<typeof standingOf>[0])
  const { run, phase, history = [], failedChecks = 0 } = status
  const side = (of: NonNullable<typeof run>["source"], pods: number): Side => ({
    hash: of.hash,
    image: of.images?.[0] ?? "",
    pods,
  })
  return {
    name: metadata.name,
    namespace: metadata.namespace ?? "",
    state,
    phase: state === "NotSeenYet" ? "NotSeenYet" : (phase ?? "NotSeenYet"),
    reason,
    message,
    target: `${spec.targetRef.kind} ${spec.targetRef.name}`,
    weight: shareOf(status),
    weightSince: run?.weightSince,
    isMirrored: run?.mirrored ?? false,
    failedChecks: run?.failedChecks ?? failedChecks,
    threshold: Math.max(1, spec.analysis?.threshold ?? 1),
    run: run && {
      id: run.id,
      startedAt: run.startedAt,
      source: side(run.source, run.sizes.source),
      target: side(run.target, run.sizes.target),
      full: run.sizes.full,
      next: run.next?.weight,
      iterations: run.iterations ?? 0,
      metrics: run.metrics ?? [],
      waits: (run.gates ?? []).filter(gate => gate.state === "Waiting" || gate.state === "Refused"),
    },
    history,
  }
}

/** No run is under way, and the last one, if any, was promoted. */
const good: ReadonlySet<Progress["phase"]> = new Set(["Initialized", "Succeeded"])

/** How a wait for the last change ends, if it does. */
export function endOf({ phase, state }: Pick<Progress, "phase" | "state">): "complete" | "failed" | undefined {
  if (state === "Stalled") return "failed"
  // Ready after a failed run: the template is again the one that runs.
  if (phase === "Failed") return state === "Ready" ? "complete" : "failed"
  return good.has(phase) && state === "Ready" ? "complete" : undefined
}
