import type { Instant } from "#lib/instant.ts"
import type { Labels, Traffic } from "../traffic/index.ts"
import { evaluate, keyOf, type StoredSeries, type Value } from "./evaluate.ts"
import type { Sample } from "./functions.ts"
import { parse, QueryError } from "./parse.ts"

export type Answer = { readonly status: number; readonly body: string }

/** A Prometheus that scrapes the counters of simulated requests, in virtual time. */
export type SimulatedPrometheus = {
  /** Answers `GET /api/v1/query?query=…&time=…` as Prometheus does. `time` is in seconds; now by default. */
  answer(path: string): Answer
  /** The value of a query, now or then. Throws a `QueryError`. */
  query(text: string, at?: Instant): Value
  /** Every series with its samples. */
  series(): readonly StoredSeries[]
  /** It scrapes nothing from now on, and does not answer: `answer` returns 503. */
  stop(): void
  resume(): void
}

export type PrometheusOptions = {
  traffic: Traffic
  now(): Instant
  scrapeMs?: number
  keptMs?: number
}

type Kept = { labels: Labels; samples: Sample[]; isThere: boolean }

export function createPrometheus(options: PrometheusOptions): SimulatedPrometheus {
  const { traffic, now, scrapeMs = 5000, keptMs = 3_600_000 } = options
  const all = new Map<string, Kept>()
  /** The labels of a reading are one object for the life of a series, so that its key is made once. */
  const known = new WeakMap<Labels, Kept>()
  let isStopped = false

  function keptOf(labels: Labels): Kept {
    const found = known.get(labels)
    if (found) return found
    const key = keyOf(labels)
    const kept = all.get(key) ?? { labels, samples: [], isThere: false }
    all.set(key, kept)
    known.set(labels, kept)
    return kept
  }

  traffic.every(scrapeMs, at => {
    if (isStopped) return
    const seen = new Set<Kept>()
    for (const { labels, value } of traffic.counters.readings()) {
      const kept = keptOf(labels)
      kept.samples.push({ at, value })
      seen.add(kept)
    }
    for (const [key, kept] of all) {
      // A series that a scrape no longer has is over at once, not after five minutes.
      if (kept.isThere && !seen.has(kept)) kept.samples.push({ at, value: Number.NaN, isStale: true })
      kept.isThere = seen.has(kept)
      const old = kept.samples.findIndex(sample => sample.at > at - keptMs)
      if (old > 100) kept.samples.splice(0, old)
      if (old < 0) all.delete(key)
    }
  })

  function query(text: string, at = now()): Value {
    traffic.catchUp()
    return evaluate(parse(text), { series: [...all.values()], now: at })
  }

  return {
    query,
    series() {
      traffic.catchUp()
      return [...all.values()]
    },
    answer(path) {
      const { pathname, searchParams } = new URL(path, "http://prometheus")
      if (isStopped) return { status: 503, body: "Service Unavailable" }
      if (pathname !== "/api/v1/query") return { status: 404, body: "404 page not found" }
      const time = searchParams.get("time")
      try {
        const at = time === null ? now() : Number(time) * 1000
        return succeeded(query(searchParams.get("query") ?? "", at), at)
      } catch (error) {
        if (!(error instanceof QueryError)) throw error
        const body = { status: "error", errorType: "bad_data", error: `invalid parameter "query": ${error.message}` }
        return { status: 400, body: JSON.stringify(body) }
      }
    },
    stop() {
      traffic.catchUp()
      isStopped = true
    },
    resume() {
      traffic.catchUp()
      isStopped = false
    },
  }
}

function succeeded(value: Value, at: Instant): Answer {
  const pair = (number: number) => [at / 1000, textOf(number)]
  const data =
    value.is === "scalar"
      ? { resultType: "scalar", result: pair(value.value) }
      : {
          resultType: "vector",
          result: value.elements.map(({ labels, value: number }) => ({ metric: labels, value: pair(number) })),
        }
  return { status: 200, body: JSON.stringify({ status: "success", data }) }
}

function textOf(value: number): string {
  if (Number.isNaN(value)) return "NaN"
  return Number.isFinite(value) ? String(value) : value > 0 ? "+Inf" : "-Inf"
}
