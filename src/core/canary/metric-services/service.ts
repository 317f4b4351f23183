import type { MetricTemplateSpec } from "#api/v1alpha1/metrictemplate/index.ts"
import type { Reply } from "../prometheus.ts"
import type { Problem } from "../queries.ts"
import type { Answer } from "../verdict.ts"

export type MetricProvider = MetricTemplateSpec["provider"]

export type Question = {
  readonly provider: MetricProvider
  readonly query: string
  /** The keys of the Secret that `secretRef` names; absent where it names none. */
  readonly credentials?: ReadonlyMap<string, string> | undefined
}

/** What is sent. Where it may go is decided by what sends it. */
export type ServiceRequest = {
  readonly url: string
  readonly method: "GET" | "POST"
  readonly headers: Readonly<Record<string, string | string[]>>
  readonly body?: string
}

/**
 * What measures. Pure: a service says what is asked and reads what was answered; the controller asks. One module each,
 * so that another service is another file.
 */
export type MetricService = {
  /** `spec.provider.type`. */
  readonly type: MetricProvider["type"]
  /** What the template lacks, whatever is asked. */
  problemOf(provider: MetricProvider): Problem | undefined
  requestOf(question: Question): ServiceRequest | Problem
  answerOf(reply: Reply): Answer
}
