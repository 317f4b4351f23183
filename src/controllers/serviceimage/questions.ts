import type { ServiceImage, TierAnalysis } from "#api/v1alpha1/serviceimage/index.ts"
import type { Called, Hooks } from "../hooks.ts"
import type { Round as Asked, Measuring } from "../measure.ts"
import { intervalOf, type Round, type RoundCheck } from "./analysis.ts"
import type { Plan } from "./plan.ts"

/** What a step is judged with. */
export type Judges = { readonly measuring: Pick<Measuring, "checksOf">; readonly hooks: Pick<Hooks, "answerOf"> }

type Context = Pick<Plan, "tiers" | "status"> & { readonly serviceImage: ServiceImage }

/**
 * What is found in the rounds that are due, by tier. A tier is left out while an answer is missing; the ServiceImage is
 * looked at again when it has come. The cohort is not read: a question costs the same for any number of objects.
 */
export function checksFor(
  asks: readonly Round[],
  context: Context,
  { measuring, hooks }: Judges,
): Map<string, readonly RoundCheck[]> {
  const found = new Map<string, readonly RoundCheck[]>()
  for (const round of asks) {
    const tier = context.tiers.find(({ name }) => name === round.tier)
    if (!tier?.analysis) continue
    const { analysis, image } = tier
    const measured = measuring.checksOf(roundFor(round, context, analysis, image))
    const answered = analysis.webhooks.map(hook => checkOf(hook, round, context, { analysis, image, hooks }))
    if (measured && !answered.includes(undefined)) found.set(round.tier, [...measured, ...(answered as RoundCheck[])])
  }
  return found
}

/** The same for each look until the round is judged; another operation, step or spec has other rounds. */
const runOf = ({ serviceImage: { metadata }, status }: Context, { tier, percent }: Round) =>
  `${metadata.uid} ${metadata.generation} ${status.operation?.id} ${tier || "-"} ${percent}`

function roundFor(round: Round, context: Context, analysis: TierAnalysis, image: string): Asked {
  const { metadata, spec } = context.serviceImage
  const namespace = spec.analysisNamespace ?? ""
  return {
    key: metadata.name,
    id: `${runOf(context, round)} ${round.number}`,
    namespace,
    metrics: analysis.metrics,
    intervalMs: intervalOf(analysis),
    values: { name: metadata.name, namespace, target: image, tier: round.tier, interval: "", variables: {} },
    atThisWeightMs: round.sinceMs,
    builtIn: name => ({ reason: "NotSupported", message: `${name} is built in for Canaries: write templateRef` }),
  }
}

function checkOf(
  hook: Called,
  round: Round,
  context: Context,
  { analysis, image, hooks }: { analysis: TierAnalysis; image: string; hooks: Judges["hooks"] },
): RoundCheck | undefined {
  const { metadata, spec } = context.serviceImage
  const { tier, percent, number } = round
  const answer = hooks.answerOf({
    key: metadata.name,
    caller: { name: metadata.name, namespace: spec.analysisNamespace ?? "", uid: metadata.uid ?? "" },
    hook: { ...hook, metadata: { ...hook.metadata, tier, percent: String(percent), image } },
    intervalMs: intervalOf(analysis),
    runId: runOf(context, round),
    round: number,
    phase: "Progressing",
    checksum: context.status.operation?.id ?? "",
  })
  const { name } = hook
  if (!answer) return undefined
  if (answer.yes) return { name, verdict: "Yes" }
  // A call that may not be made, or was not, says nothing about the image.
  if (answer.reason) return { name, verdict: "Error", why: answer.why, reason: answer.reason }
  if (answer.isUncalled) return { name, verdict: "Error", why: answer.why }
  return { name, verdict: "No", why: answer.why }
}
