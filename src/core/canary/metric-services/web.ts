import { celErrorWords, celJson, compile, isMissingField, lookBudget, syntaxErrorIn } from "#lib/cel.ts"
import { clip } from "#lib/text.ts"
import type { Problem } from "../queries.ts"
import type { Answer } from "../verdict.ts"
import { authorizationOf, headersWithout } from "./authorization.ts"
import type { MetricService } from "./service.ts"

/**
 * Anything that answers with JSON. `query` is what is asked: parameters of the address, or with `method: POST` the body.
 * `value` is an expression that finds the number in the answer.
 */
export const web: MetricService = {
  type: "web",

  problemOf({ address, value }) {
    if (!address) return invalid("provider.address is missing: write https://HOST/PATH of what answers with JSON")
    if (!value) return wrongValue("is missing: write where the number stands in the answer, such as response.value")
    const syntax = syntaxErrorIn(value)
    if (syntax) return wrongValue(`is no CEL at character ${syntax.at + 1}: ${syntax.summary}`)
    const compiled = compiledValue(value)
    return "reason" in compiled ? compiled : undefined
  },

  // It is a text of the service's own.
  syntaxProblemOf: () => undefined,

  requestOf({ provider, query, credentials }) {
    const url = URL.parse(provider.address ?? "")
    if (!url) return invalid("provider.address cannot be used: write https://HOST/PATH of what answers with JSON")
    const authorization = authorizationOf(credentials)
    if (typeof authorization === "object") return authorization
    const ours = authorization === undefined ? {} : { authorization }
    const headers = { ...headersWithout(provider.headers, ...Object.keys(ours)), ...ours }
    if (provider.method === "POST") {
      const hasType = Object.keys(headers).some(name => name.toLowerCase() === "content-type")
      const type = hasType ? {} : { "content-type": "application/json" }
      return { url: url.href, method: "POST", headers: { ...headers, ...type }, body: query.trim() }
    }
    for (const [name, value] of new URLSearchParams(query.trim())) url.searchParams.append(name, value)
    return { url: url.href, method: "GET", headers }
  },

  answerOf({ status, body, isSecret }, { value = "" }) {
    if (status < 200 || status >= 300) return no(`the metric service answered ${status}`)
    const response = jsonOf(body)
    if (response === undefined) return no("the metric service did not answer with JSON: is its address right?")
    const found = foundIn(response, value, isSecret)
    return "ok" in found ? found : numberOf(found.value)
  },
}

/** What an expression over `response` gives, or the answer that there is none. */
export function foundIn(response: unknown, expression: string, isSecret: boolean): { value: unknown } | Answer {
  const compiled = compiledValue(expression)
  if ("reason" in compiled) return no(compiled.message)
  try {
    return { value: celJson(compiled.evaluate({ response }, lookBudget()), lookBudget()) }
  } catch (error) {
    // A list that is shorter, or a field that is not there: nothing was measured.
    if (isMissingField(error)) return none
    return no(`provider.value cannot read the answer${isSecret ? "" : `: ${clip(celErrorWords(error), 160)}`}`)
  }
}

const none: Answer = { ok: true, series: [] }

function numberOf(result: unknown): Answer {
  if (result === null || (Array.isArray(result) && result.length === 0)) return none
  if (typeof result === "number") return { ok: true, series: [{ labels: {}, value: result }] }
  return no("provider.value gave something that is no number: write double(…) around a text, or name one element")
}

type Compiled = { readonly evaluate: ReturnType<typeof compile> }

function compiledValue(value: string): Compiled | Problem {
  try {
    return { evaluate: compile(value, ["response"], { isLenient: true }) }
  } catch (error) {
    return wrongValue(`does not fit together: ${clip(celErrorWords(error), 160)}`)
  }
}

const invalid = (message: string): Problem => ({ reason: "InvalidSpec", message })
const wrongValue = (why: string): Problem => ({ reason: "InvalidQuery", message: `provider.value ${why}` })
const no = (message: string): Answer => ({ ok: false, message })

/** Deeper than any answer that has a number. */
const depthMost = 32

/**
 * JSON for expressions, or undefined. Every number is a double, whether it has a fraction in this answer or not; nothing is
 * inherited from a prototype.
 */
export function jsonOf(body: string): unknown {
  const plain = (value: unknown, depth: number): unknown => {
    if (typeof value !== "object" || value === null) return value
    if (depth > depthMost) return null
    if (Array.isArray(value)) return value.map(each => plain(each, depth + 1))
    const entries = Object.entries(value).map(([key, each]) => [key, plain(each, depth + 1)] as const)
    return Object.assign(Object.create(null), Object.fromEntries(entries))
  }
  try {
    return plain(JSON.parse(body), 0)
  } catch {
    return undefined
  }
}
