import type { Canary } from "#api/v1alpha1/canary/index.ts"
import { builtInQuery } from "#core/canary/queries.ts"
import type { QueryValues } from "#core/canary/query-template.ts"
import type { HookAsk } from "#core/canary/sight.ts"
import { parseDuration } from "#lib/duration.ts"
import type { HookCall } from "../hooks.ts"
import type { Round } from "../measure.ts"

// What a run asks for, in the words of the modules that answer.

const intervalMs = ({ spec }: Canary) => parseDuration(spec.analysis.interval) ?? 0

type Asked = {
  readonly runId: string
  readonly number: number
  readonly atThisWeightMs: number
  readonly values: QueryValues
}

export function roundFor(key: string, canary: Canary, { runId, number, atThisWeightMs, values }: Asked): Round {
  const { metadata, spec } = canary
  return {
    key,
    id: `${metadata.uid} ${metadata.generation} ${runId} ${number}`,
    namespace: metadata.namespace ?? "",
    metrics: spec.analysis.metrics,
    intervalMs: intervalMs(canary),
    values,
    atThisWeightMs,
    builtIn: name => builtInQuery(name, spec),
    metricsServer: spec.metricsServer,
  }
}

export function callFor(key: string, canary: Canary, run: { id: string; checksum: string }, ask: HookAsk): HookCall {
  const { name, namespace = "", uid = "" } = canary.metadata
  const caller = { name, namespace, uid }
  return { key, caller, intervalMs: intervalMs(canary), runId: run.id, checksum: run.checksum, ...ask }
}
