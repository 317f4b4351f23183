import {
  maxExamples,
  maxExamplesPerTier,
  maxFailureMessages,
  maxHistory,
  maxHistoryImageCharacters,
  maxJudgedTiers,
  maxTiers,
  ServiceImage,
  type ServiceImageStatus,
} from "#api/v1alpha1/serviceimage/index.ts"
import { largest } from "./largest.ts"

/** The largest status of a ServiceImage that both the bounds and the rules over several fields admit. */
export function largestStatus(): ServiceImageStatus {
  const status = largest(ServiceImage.schema.properties!.status!) as ServiceImageStatus
  let examplesLeft = maxExamples
  let messagesLeft = maxFailureMessages
  for (const tier of status.tierStatus) {
    let tierLeft = maxExamplesPerTier
    for (const failure of tier.failures) {
      failure.examples = failure.examples.slice(0, Math.min(tierLeft, examplesLeft))
      tierLeft -= failure.examples.length
      examplesLeft -= failure.examples.length
      if (messagesLeft-- <= 0) delete failure.message
    }
  }
  for (const tier of status.tierStatus.slice(maxJudgedTiers)) delete tier.analysis
  for (const entry of status.history) {
    // Many short entries cost more in quotes than few long ones.
    const length = Math.floor(maxHistoryImageCharacters / maxHistory / maxTiers)
    const names = Array.from({ length: maxTiers }, (_, index) => `t${index}`)
    entry.images = Object.fromEntries(names.map(name => [name, "z".repeat(length - name.length)]))
  }
  return status
}
