import { namesOf } from "#api/names.ts"
import type { Metric, Reason } from "#api/v1alpha1/canary/index.ts"
import type { MetricTemplate } from "#api/v1alpha1/metrictemplate/index.ts"
import {
  type MetricProvider,
  type MetricService,
  metricServiceOf,
  type Question,
} from "#core/canary/metric-services/index.ts"
import { type BuiltIn, isBuiltIn, type Problem, questionsOf, variableProblem } from "#core/canary/queries.ts"
import { everyName, queryProblem } from "#core/canary/query-check.ts"
import type { QueryValues } from "#core/canary/query-template.ts"
import { judgeRelative } from "#core/canary/relative.ts"
import { notShared, placeOf } from "#core/canary/sharing.ts"
import type { Check } from "#core/canary/tally.ts"
import { type Answer, judge, type Verdict } from "#core/canary/verdict.ts"
import type { Egress, EgressFailure, EgressRequest } from "#egress/index.ts"
import { aborted } from "#lib/aborted.ts"
import type { Instant } from "#lib/instant.ts"
import { createLimiter, LineIsFull } from "#lib/limiter.ts"
import type { KubeError } from "#runtime/client/errors.ts"
import type { Wiring } from "#runtime/controller.ts"
import type { Held } from "#runtime/kind-controller.ts"
import { createQuestions } from "#runtime/questions.ts"
import type { SecretRead, Secrets } from "./secrets.ts"
import type { Sharing } from "./sharing.ts"
import { whyUnlisted } from "./unlisted.ts"

/** One time at which all metrics of an object are asked for. */
export type Round = {
  /** What is looked at again when the answers have come. */
  readonly key: string
  /** The same for each look until the round is judged, and never again afterwards. */
  readonly id: string
  /** On whose behalf it is asked: templates and Secrets are named from here, and its way out is used. */
  readonly namespace: string
  readonly metrics: readonly Metric[]
  readonly intervalMs: number
  readonly values: QueryValues
  /** No window reaches back further. */
  readonly atThisWeightMs: number
  /** The query of a metric that names none. */
  readonly builtIn: (name: BuiltIn) => string | Problem
  /** The Prometheus that the object names. */
  readonly metricsServer?: string | undefined
}

/** A metric's verdict. An error with a reason needs a person: the spec, a template or a right has to change. */
export type MetricCheck = Check & { readonly reason?: Reason }

export type Measuring = {
  /**
   * The verdicts of a round in the order of the spec, or undefined while one of them is missing. The object is enqueued
   * when all have come.
   */
  checksOf(round: Round): readonly MetricCheck[] | undefined
  /** Whether any question is under way. */
  readonly areOpen: boolean
}

export type MeasuringDeps = {
  egress: Egress
  templates: {
    get(key: string): Held<MetricTemplate> | undefined
    synced?(signal?: AbortSignal): Promise<void>
    readonly hasSynced?: boolean
    readonly failure?: KubeError | undefined
  }
  secrets: Secrets
  sharing: Sharing
  /** The Prometheus of `--metrics-server`. An administrator named it, so that it has a way out of its own. */
  metricsServer?: { url: string; egress: Egress } | undefined
}

/** Questions of one namespace that are under way: its others wait, and those of other namespaces do not. */
const atOnce = { all: 64, owner: 6, waiting: 512 }
/** One number needs a few hundred bytes. */
const maxBytes = 64 * 1024
const questionMs = 10_000
const roundMs = { least: 10_000, most: 60_000 }
const rememberMs = 600_000
const roundsMost = 10_000

/** Asks for metrics beside the loop: a metric service that hangs delays no other object. */
export function createMeasuring(wiring: Pick<Wiring, "clock" | "enqueue" | "signal">, deps: MeasuringDeps): Measuring {
  const { clock, signal } = wiring
  const inTurn = createLimiter(atOnce).run
  const failed = (): readonly MetricCheck[] => [error("analysis", { message: "the metrics could not be asked for" })]
  const questions = createQuestions<readonly MetricCheck[]>({ clock, rememberMs, most: roundsMost, failed })

  async function ask(round: Round): Promise<readonly MetricCheck[]> {
    const late = new AbortController()
    const ms = Math.max(roundMs.least, Math.min(roundMs.most, round.intervalMs))
    const cancel = clock.after(ms, () => late.abort())
    const until = AbortSignal.any([late.signal, signal])
    const owner = round.namespace
    try {
      return await Promise.all(
        round.metrics.map(async metric => {
          try {
            return await orAborted(
              until,
              inTurn({ owner, signal: until }, () => measure(deps, round, metric, clock.now(), until)),
            )
          } catch (cause) {
            if (late.signal.aborted)
              return error(metric.name, unlisted(deps, metric) ?? { message: `no answer within ${ms / 1000} s` })
            const message = cause instanceof LineIsFull ? cause.message : "an object that it needs could not be read"
            return error(metric.name, { message })
          }
        }),
      )
    } finally {
      cancel()
    }
  }

  return {
    checksOf(round) {
      const { key, id, metrics } = round
      if (metrics.length === 0) return []
      // The end of the process ends its questions, which is no error of what was asked. The next process asks again.
      if (signal.aborted) return undefined
      const question = `${key} ${id}`
      const answer = questions.get(question)
      if (!answer)
        questions.ask(
          question,
          () => ask(round),
          () => wiring.enqueue(key),
        )
      return answer?.said
    },
    get areOpen() {
      return questions.areOpen
    },
  }
}

/** A read of the API server has no signal. It may end later; its result is not used. */
function orAborted<T>(signal: AbortSignal, work: Promise<T>): Promise<T> {
  work.catch(() => {})
  const end = aborted(signal).then(() => Promise.reject(signal.reason))
  return Promise.race([work, end])
}

const error = (name: string, { reason, message }: { reason?: Reason; message: string }): MetricCheck => ({
  name,
  verdict: "Error",
  why: message,
  ...(reason && { reason }),
})

/** What a metric's questions are asked with. */
type Source = {
  service: MetricService
  provider: MetricProvider
  query: string
  egress: Egress
  /** The namespace that named the address and the Secret. */
  namespace: string
  /** Another namespace than the one that asks: what its service says stays there. */
  isForeign: boolean
}

async function measure(
  deps: MeasuringDeps,
  round: Round,
  metric: Metric,
  now: Instant,
  signal: AbortSignal,
): Promise<MetricCheck> {
  const { name } = metric
  const source = await sourceOf(deps, round, metric, signal)
  if ("message" in source) return error(name, source)
  const texts = questionsOf(metric, source.query, round.values, round.atThisWeightMs)
  if ("reason" in texts) return error(name, texts)
  const wrong = queryProblem(source.query, metric.templateVariables ?? {}, source.service, everyName)
  if (wrong !== undefined)
    return error(name, { reason: "InvalidQuery", message: source.isForeign ? foreign : `metric ${name}: ${wrong}` })
  const credentials = await credentialsOf(deps, source)
  if (credentials && !credentials.ok)
    return error(name, source.isForeign ? { ...credentials, message: foreign } : credentials)
  const keys = credentials && new Map([...credentials.keys].map(([key, bytes]) => [key, bytes.toString("utf8")]))
  const onBehalfOf = round.namespace
  const window = { from: now - texts.windowMs, to: now }
  const one = (query: string) => answerOf(source, { query, credentials: keys, window, onBehalfOf, signal })
  const [target, running] = await Promise.all([
    one(texts.target),
    texts.source === undefined ? undefined : one(texts.source),
  ])
  const problem = [target, running].find(answer => answer && "reason" in answer)
  if (problem && "reason" in problem) return error(name, problem)
  const answers = [target, running] as [Answer, Answer | undefined]
  const verdict: Verdict = answers[1] ? judgeRelative(metric, answers[0], answers[1]) : judge(metric, answers[0])
  return { name, ...verdict }
}

const foreign = "the MetricTemplate cannot be used: its own status says why"

/** Why templates will not be there, however long they are waited for. What was listed once is used as it was. */
function unlisted({ templates }: Pick<MeasuringDeps, "templates">, { templateRef }: Metric) {
  const message = templateRef && templates.hasSynced === false ? whyUnlisted(template, templates) : undefined
  return message === undefined ? undefined : { message }
}

const template = namesOf("MetricTemplate")

/** Where a metric is asked for. A template comes before a query, and both before what is built in. */
async function sourceOf(
  { egress, templates, sharing, metricsServer }: MeasuringDeps,
  { namespace: own, builtIn, metricsServer: named }: Round,
  metric: Metric,
  signal: AbortSignal,
): Promise<Source | Problem | { message: string }> {
  if (metric.templateRef) {
    const place = placeOf(metric.templateRef, own)
    const isForeign = place.namespace !== own
    if (isForeign && !(await sharing.isShared(place.namespace, signal)))
      return { reason: "TemplateMissing", message: notShared("MetricTemplate", place) }
    const none = unlisted({ templates }, metric)
    if (none) return none
    await templates.synced?.(signal)
    const found = templates.get(`${place.namespace}/${place.name}`)?.object
    if (!found)
      return {
        reason: "TemplateMissing",
        message: `MetricTemplate ${place.name} does not exist in ${place.namespace}: create it, or correct templateRef`,
      }
    const bad = isForeign ? variableProblem(metric) : undefined
    if (bad) return bad
    const { provider, query } = found.spec
    return withService({ provider, query, egress, namespace: place.namespace, isForeign })
  }
  const query = metric.query ? metric.query : isBuiltIn(metric.name) ? builtIn(metric.name) : ""
  if (typeof query !== "string") return query
  const prometheusAt = (address: string): MetricProvider => ({ type: "prometheus", address, insecureSkipVerify: false })
  if (named) return withService({ provider: prometheusAt(named), query, egress, namespace: own, isForeign: false })
  if (metricsServer)
    return withService({
      provider: prometheusAt(metricsServer.url),
      query,
      egress: metricsServer.egress,
      namespace: own,
      isForeign: false,
    })
  return {
    reason: "InvalidSpec",
    message: `metric ${metric.name}: no Prometheus is named: write spec.metricsServer, or templateRef; an administrator may give all Canaries one with --metrics-server`,
  }
}

function withService(source: Omit<Source, "service">): Source | Problem {
  const service = metricServiceOf(source.provider)
  if ("reason" in service) return service
  return service.problemOf(source.provider) ?? { ...source, service }
}

async function credentialsOf(
  { secrets }: MeasuringDeps,
  { namespace, provider }: Source,
): Promise<SecretRead | undefined> {
  return provider.secretRef ? secrets.read(namespace, provider.secretRef.name) : undefined
}

type Asked = Pick<Question, "query" | "credentials" | "window"> & {
  onBehalfOf: string
  signal: AbortSignal
}

async function answerOf(
  { service, provider, egress, namespace, isForeign }: Source,
  { query, credentials, window, onBehalfOf, signal }: Asked,
): Promise<Answer | Problem> {
  const request = service.requestOf({ provider, query, credentials, window })
  if ("reason" in request) return request
  const asked: EgressRequest = {
    ...request,
    namespace,
    onBehalfOf,
    timeoutMs: questionMs,
    maxBytes,
    isUnchecked: provider.insecureSkipVerify,
    signal,
  }
  const reply = await egress.request(asked)
  if (!reply.ok) return isForeign ? { ok: false, message: `${foreign} (${reply.class})` } : unanswered(reply)
  const isSecret = isForeign || credentials !== undefined || Object.keys(provider.headers ?? {}).length > 0
  return service.answerOf({ status: reply.status, body: reply.body.toString("utf8"), isSecret }, provider)
}

/** A place that may not be connected to needs a person; the others may pass. */
function unanswered({ class: kind, message }: EgressFailure): Answer | Problem {
  if (kind === "ForbiddenAddress") return { reason: "AddressForbidden", message }
  if (kind === "InvalidRequest") return { reason: "InvalidSpec", message }
  return { ok: false, message }
}
