import type { Canary, CanaryStatus } from "#api/v1alpha1/canary/index.ts"
import type { Severity } from "#core/canary/alert.ts"
import type { Episode } from "#runtime/status.ts"
import type { CanaryMessage } from "./alerts.ts"
import { episodesOf } from "./report.ts"

/** What people and event hooks are told when a status changes: the same as its Events. */
export function messagesOf(canary: Canary, after: CanaryStatus): CanaryMessage[] {
  const { targetRef } = canary.spec
  const { run, history } = after
  const target = run?.target ?? history[0]?.target
  const fields = [
    { name: "Target", value: `${targetRef.kind}/${targetRef.name}.${canary.metadata.namespace}` },
    ...(target && target.images.length > 0 ? [{ name: "Images", value: target.images.join(", ") }] : []),
    ...(run ? [{ name: "Weight", value: `${run.weight}%` }] : []),
  ]
  return episodesOf(canary.status, after).map(episode => ({
    severity: severityOf(episode),
    text: `${episode.reason}: ${episode.message}`,
    fields,
    phase: after.phase ?? "",
    checksum: run?.checksum ?? after.lastAppliedSpec ?? "",
    isMuted: isAboutMutedHook(canary, after, episode),
  }))
}

/** The run waits for a person. */
const gated: readonly string[] = ["Waiting", "WaitingPromotion"]

function severityOf({ type, reason }: Episode): Severity {
  if (reason === "Failed") return "error"
  return type === "Warning" || gated.includes(reason) ? "warn" : "info"
}

function isAboutMutedHook({ spec }: Canary, { run }: CanaryStatus, { reason }: Episode): boolean {
  if (!gated.includes(reason)) return false
  const waiting = (run?.gates ?? []).filter(({ state }) => state === "Waiting")
  const isMuted = ({ type, name }: (typeof waiting)[number]) =>
    spec.analysis.webhooks.some(hook => hook.type === type && hook.name === name && hook.muteAlert)
  return waiting.length > 0 && waiting.every(isMuted)
}
