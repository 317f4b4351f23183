import type { Canary, Gate, MetricStatus } from "#api/v1alpha1/canary/index.ts"
import { counted, sentence } from "#lib/text.ts"
import { shareOf } from "./share.ts"

/** What a status says of the parts of a run, a sentence each. */
export function sentencesOf(canary: Canary): string[] {
  return [...ofRun(canary), ...untracked(canary)]
}

function untracked({ metadata, status }: Canary): string[] {
  return (status?.untrackedConfigs ?? []).map(({ name, reason }) => {
    const grant = `aim grant ${metadata.namespace ?? ""} --secrets ${name.slice(name.indexOf("/") + 1)}`
    const why = reason === "ConfigNotTracked" ? `run ${grant}` : "it could not be read, and counts as unchanged"
    return sentence(`a change of ${name} is not noticed: ${why}`)
  })
}

function ofRun({ metadata, spec, status }: Canary): string[] {
  const run = status?.run
  if (!run) return lastRun(status)
  const { source, target, sizes, weightSince, next, metrics, gates, failedChecks } = run
  const image = ({ images, hash }: typeof source) => images[0] ?? hash
  const threshold = Math.max(1, spec.analysis.threshold)
  const share = shareOf(status)
  const others = share === 100 ? "none" : "the others"
  return [
    `${image(target)} has ${share} % of the requests since ${weightSince}, with ${counted(sizes.target, "pod")}; ${image(source)} has ${others}, with ${counted(sizes.source, "pod")}.`,
    ...(next
      ? [`Next it gets ${next.weight} %: the checks have passed, and pods, gates or the gateway are waited for.`]
      : []),
    ...(failedChecks > 0 ? [`${failedChecks} of ${threshold} checks that may fail have failed.`] : []),
    ...metrics.filter(({ verdict }) => verdict !== "Good").map(metricWords),
    ...gates.filter(({ state }) => state === "Waiting" || state === "Refused").map(gate => gateWords(gate, metadata)),
  ]
}

function lastRun(status: Canary["status"]): string[] {
  const last = status?.history?.[0]
  if (!last) return []
  const { result, reason, message, endedAt, target, approvedBy } = last
  const why = message ? `: ${message}` : ""
  const by = approvedBy ? `; ${approvedBy} approved it` : ""
  return [
    sentence(`the last run, of ${target.images[0] ?? target.hash}, ended ${endedAt}: ${result} (${reason}${why})${by}`),
  ]
}

function metricWords({ name, verdict, message, count, since }: MetricStatus): string {
  const times = count > 1 ? `, ${count} times since ${since}` : ""
  return sentence(`metric ${name} is ${verdict}${times}${message ? `: ${message}` : ""}`)
}

function gateWords({ type, name, since, message, attempts }: Gate, metadata: Canary["metadata"]): string {
  if (type === "approval")
    return `It waits for a person since ${since} (${name}): aim approve canary/${metadata.name} -n ${metadata.namespace ?? ""}.`
  const asked = attempts > 0 ? `, asked ${counted(attempts, "time")}` : ""
  return sentence(`it waits for hook ${name} (${type}) since ${since}${asked}${message ? `: ${message}` : ""}`)
}
