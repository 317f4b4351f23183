import type { MetricTemplateSpec } from "#api/v1alpha1/metrictemplate/index.ts"
import type { Instant } from "#lib/instant.ts"
import type { Reply } from "../prometheus.ts"
import type { SyntaxProblem } from "../promql.ts"
import type { Problem } from "../queries.ts"
import type { Answer } from "../verdict.ts"

export type MetricProvider = MetricTemplateSpec["provider"]

export type Question = {
  readonly provider: MetricProvider
  readonly query: string
  /** The keys of the Secret that `secretRef` names; absent where it names none. */
  readonly credentials?: ReadonlyMap<string, string> | undefined
  /** What is measured, for services that are told it beside the query. It begins at the present weight or later. */
  readonly window: { readonly from: Instant; readonly to: Instant }
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
  /** Where it is asked, for a service that has an address of its own or asks at another one than the template names. */
  addressOf?(provider: MetricProvider): string | undefined
  /** What the template lacks, whatever is asked. */
  problemOf(provider: MetricProvider): Problem | undefined
  /** Where a query is not of the service's language. Whether it finds anything, only the service knows. */
  syntaxProblemOf(query: string): SyntaxProblem | undefined
  requestOf(question: Question): ServiceRequest | Problem
  answerOf(reply: Reply, provider: MetricProvider): Answer
}
