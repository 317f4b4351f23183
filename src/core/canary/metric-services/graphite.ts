import { labelsOf } from "../prometheus.ts"
import type { SyntaxProblem } from "../promql.ts"
import type { Problem } from "../queries.ts"
import type { Answer } from "../verdict.ts"
import { authorizationOf, headersWithout } from "./authorization.ts"
import type { MetricService } from "./service.ts"
import { jsonOf } from "./web.ts"

/**
 * The render API of Graphite. `query` is its parameters, as in Flagger: `target=…`, and others where they are needed.
 * Graphite itself makes one number of the window, by the function that `consolidateBy` names in the target, else as the
 * mean.
 */
export const graphite: MetricService = {
  type: "graphite",

  problemOf: ({ address }) =>
    address ? undefined : invalid("provider.address is missing: write http://HOST:PORT of a Graphite"),

  syntaxProblemOf,

  requestOf({ provider, query, credentials, window: { from, to } }) {
    const url = URL.parse(provider.address ?? "")
    if (!url) return invalid("provider.address cannot be used: write http://HOST:PORT of a Graphite")
    const authorization = authorizationOf(credentials)
    if (typeof authorization === "object") return authorization
    const ours = authorization === undefined ? {} : { authorization }
    url.pathname = `${url.pathname.replace(/\/+$/, "")}/render`
    const asked = parametersOf(query)
    // Without it Graphite answers for the last day, which other revisions have served.
    if (!asked.has("from")) asked.set("from", `-${Math.ceil((to - from) / 1000)}s`)
    if (!asked.has("maxDataPoints")) asked.set("maxDataPoints", "1")
    // With a memcached, the answer to the same question is kept for a minute: it would be about another weight.
    asked.set("noCache", "1")
    asked.set("format", "json")
    for (const [name, value] of asked) url.searchParams.append(name, value)
    return {
      url: url.href,
      method: "GET",
      headers: { ...headersWithout(provider.headers, ...Object.keys(ours)), ...ours },
    }
  },

  answerOf({ status, body, isSecret }) {
    if (status < 200 || status >= 300) return no(`the metric service answered ${status}${hints[status] ?? ""}`)
    const reply = jsonOf(body)
    if (!Array.isArray(reply) || !reply.every(isSeries))
      return no("the metric service did not answer as Graphite does: is its address right?")
    // A series without a value in the window is one that is no longer written, as where names have hashes.
    const series = reply.flatMap(({ tags, target, datapoints }) => {
      const value = datapoints.map(([each]) => each).findLast(each => each !== null)
      const labels = isSecret ? {} : labelsOf({ name: target, ...(tags as object | undefined) })
      return value == null ? [] : [{ labels, value }]
    })
    return { ok: true, series }
  },
}

const hints: Readonly<Record<number, string>> = {
  401: ": write credentials to a Secret, and name it with secretRef",
  403: ": write credentials to a Secret, and name it with secretRef",
  400: ": the target does not parse, or a function got an argument that does not fit",
  500: ": the target may not parse, or a function got an argument that does not fit; a duration stands within quotes",
}

/** What is sent. Where lines break makes no difference. */
const parametersOf = (query: string) => new URLSearchParams(query.replaceAll(/\s+/g, " ").trim())

/** Graphite answers a target with an open bracket as one that finds nothing, so that it is looked at here. */
function syntaxProblemOf(query: string): SyntaxProblem | undefined {
  const target = parametersOf(query).get("target")
  if (!target?.trim())
    return { at: 0, what: "it must be target=…, and other parameters of Graphite's render API behind &" }
  const open: { closer: string; at: number }[] = []
  for (let at = 0; at < query.length; at++) {
    const character = query[at]!
    const quote = open.at(-1)?.closer
    if (quote === '"' || quote === "'") {
      if (character === quote) open.pop()
    } else if (Object.hasOwn(closers, character)) open.push({ closer: closers[character]!, at })
    else if (Object.values(closers).includes(character) && open.pop()?.closer !== character)
      return { at, what: `${character} closes nothing` }
  }
  const left = open.at(-1)
  return left && { at: left.at, what: `${query[left.at]} is not closed by ${left.closer}` }
}

const closers: Readonly<Record<string, string>> = { "(": ")", "{": "}", "[": "]", '"': '"', "'": "'" }

type Series = { target?: unknown; tags?: unknown; datapoints: readonly (readonly [number | null, ...unknown[]])[] }

const isSeries = (each: unknown): each is Series => {
  const points = (each as { datapoints?: unknown } | null)?.datapoints
  return Array.isArray(points) && points.every(isPoint)
}
const isPoint = (point: unknown) => Array.isArray(point) && (point[0] === null || typeof point[0] === "number")

const invalid = (message: string): Problem => ({ reason: "InvalidSpec", message })
const no = (message: string): Answer => ({ ok: false, message })
