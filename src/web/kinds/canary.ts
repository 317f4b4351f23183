import { awaitedApprovals } from "#core/canary/gates.ts"
import { type Instant, parseInstant } from "#lib/instant.ts"
import { type Progress, progressOf, type SeenCanary } from "#operations/canary/progress.ts"
import { canaries } from "#operations/kinds.ts"
import { type KubeObject, keyOf } from "#runtime/resource.ts"
import { shown, timed } from "../text.ts"
import type { CanaryDetails, CanaryRow, HistoryEntry } from "../wire.ts"
import { differencesOf, imagesShown } from "./history.ts"
import { baseOf, type KindPage, standingRow } from "./kind.ts"

export const canaryPage: KindPage = {
  resource: canaries,
  view: "canary",
  short: "canary",
  actions: ["approve", "pause", "resume", "rollback", "set-image"],
  open(clock) {
    const kept = new Map<string, Curves>()
    return {
      row(object) {
        const progress = progressOf(object as unknown as SeenCanary)
        note(kept, keyOf(object.metadata), progress, clock.now())
        return rowOf(object, progress)
      },
      details(object) {
        const progress = progressOf(object as unknown as SeenCanary)
        const curves = kept.get(keyOf(object.metadata))
        return { canary: detailsOf(object, progress, curves), history: historyOf(progress) }
      },
      forget: key => kept.delete(key),
    }
  },
}

const seenIn = (object: KubeObject) => object as unknown as SeenCanary

function rowOf(object: KubeObject, progress: Progress): CanaryRow {
  const run = seenIn(object).status?.run
  const awaitsApproval = run !== undefined && awaitedApprovals(run).length > 0
  const standing = standingRow(object)
  return {
    ...baseOf(object, canaries),
    ...standing,
    view: "canary",
    attention: awaitsApproval ? "Act" : progress.phase === "Failed" ? "Look" : standing.attention,
    phase: shown(progress.phase, 32),
    target: shown(progress.target),
    weight: progress.weight,
    failedChecks: progress.failedChecks,
    threshold: progress.threshold,
    images: { from: shown(progress.run?.source.image), to: shown(progress.run?.target.image) },
    awaitsApproval,
  }
}

function detailsOf(object: KubeObject, progress: Progress, curves: Curves | undefined): CanaryDetails {
  const { run } = progress
  const gates = seenIn(object).status?.run?.gates ?? []
  const side = ({ hash, image, pods }: { hash: string; image: string; pods: number }) => ({
    hash: shown(hash, 63),
    image: shown(image),
    pods,
  })
  return {
    phase: shown(progress.phase, 32),
    ...(run && {
      run: {
        id: shown(run.id, 32),
        ...timed("startedAt", run.startedAt),
        source: side(run.source),
        target: side(run.target),
        full: run.full,
        weight: progress.weight,
        ...timed("weightSince", progress.weightSince),
        ...(run.next !== undefined && { next: run.next }),
        isMirrored: progress.isMirrored,
        iterations: run.iterations,
        failedChecks: progress.failedChecks,
        threshold: progress.threshold,
        metrics: run.metrics.map(({ name, verdict, value, message, count, at }) => ({
          name: shown(name, 128),
          verdict: shown(verdict, 32),
          value: shown(value, 32),
          message: shown(message),
          count,
          ...timed("at", at),
        })),
        gates: gates.map(({ type, name, state, message, approvedBy, since }) => ({
          type: shown(type, 32),
          name: shown(name, 128),
          state: shown(state, 32),
          message: shown(message),
          approvedBy: shown(approvedBy, 253),
          ...timed("since", since),
        })),
      },
    }),
    curves: [...(curves?.lines ?? [])].map(([metric, { at, value }]) => ({ metric, at, value })),
  }
}

type Curves = { run: string; lines: Map<string, { at: number[]; value: number[] }> }
const pointsMost = 600

/** The status has the last value of each metric alone: what is drawn is what was seen since the feed began. */
function note(kept: Map<string, Curves>, key: string, { run, weight }: Progress, now: Instant): void {
  if (!run) return
  const before = kept.get(key)
  const curves = before?.run === run.id ? before : { run: run.id, lines: new Map() }
  kept.set(key, curves)
  add(curves, "", now, weight)
  for (const { name, value, at } of run.metrics) {
    const [time, number] = [parseInstant(at), Number.parseFloat(value ?? "")]
    if (time !== undefined && Number.isFinite(number)) add(curves, shown(name, 128), time, number)
  }
}

function add({ lines }: Curves, metric: string, at: number, value: number): void {
  const line = lines.get(metric) ?? { at: [], value: [] }
  lines.set(metric, line)
  if (at <= (line.at.at(-1) ?? 0) || (metric === "" && line.value.at(-1) === value)) return
  line.at.push(at)
  line.value.push(value)
  if (line.at.length > pointsMost) {
    line.at.shift()
    line.value.shift()
  }
}

const historyOf = ({ history }: Progress): HistoryEntry[] =>
  history.map(({ id, result, reason, message, startedAt, endedAt, source, target }) => {
    const images = (of: { images?: readonly string[] }) =>
      Object.fromEntries((of.images ?? []).map((image, index) => [String(index + 1), image]))
    return {
      id: shown(id, 32),
      outcome: shown(result, 32),
      ...timed("startedAt", startedAt),
      ...timed("endedAt", endedAt),
      isRunning: false,
      total: 0,
      upToDate: 0,
      failed: 0,
      cause: [shown(reason, 64), shown(message)].filter(Boolean).join(": "),
      images: imagesShown(images(target)),
      differences: differencesOf(images(source), images(target)),
    }
  })
