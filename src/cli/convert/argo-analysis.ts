import { MetricTemplate } from "#api/v1alpha1/metrictemplate/index.ts"
import { type Conversion, isObject, type Json, judged, type Remark } from "./judged.ts"

export const listOf = (value: unknown): Json[] => (Array.isArray(value) ? value.filter(isObject) : [])

/** Fields of an object that the conversion has no use for, each with why. */
export const lost = (value: Json, at: string, used: readonly string[], why: Readonly<Record<string, string>> = {}) =>
  Object.keys(value)
    .filter(name => !used.includes(name))
    .map((name): Remark => ({ path: `${at}.${name}`, message: `lost: ${why[name] ?? "nothing here does it"}` }))

const nameOf = ({ metadata }: Json) => (isObject(metadata) ? String(metadata.name) : "")

/** A template has many metrics there, and one query here. */
const templateName = (template: Json, metric: Json) =>
  metricsOf(template).length === 1 ? nameOf(template) : `${nameOf(template)}-${String(metric.name).toLowerCase()}`

const metricsOf = ({ spec }: Json) => listOf(isObject(spec) ? spec.metrics : undefined)

const prometheusOf = ({ provider }: Json) =>
  isObject(provider) && isObject(provider.prometheus) ? provider.prometheus : undefined

/** Arguments are variables; a name has no dash here. */
const variable = (name: string) => name.replaceAll("-", "_")

/** An AnalysisTemplate: a MetricTemplate for each metric that asks a Prometheus. */
export function analysisTemplate(value: Json): Conversion {
  const remarks: Remark[] = lost(isObject(value.spec) ? value.spec : {}, "spec", ["metrics", "args"])
  const objects: Json[] = []
  for (const [index, metric] of metricsOf(value).entries()) {
    const at = `spec.metrics[${index}]`
    const prometheus = prometheusOf(metric)
    if (!prometheus) {
      remarks.push({ path: `${at}.provider`, message: "lost: only Prometheus is converted; type: web may do it" })
      continue
    }
    const headers = Object.fromEntries(listOf(prometheus.headers).map(({ key, value }) => [key, [String(value)]]))
    const query = String(prometheus.query ?? "").replaceAll(
      /\{\{\s*args\.([A-Za-z0-9_-]+)\s*\}\}/g,
      (_, name: string) => `{{ variables.${variable(name)} }}`,
    )
    const provider = {
      type: "prometheus",
      address: prometheus.address,
      ...(Object.keys(headers).length > 0 && { headers }),
      ...(prometheus.insecure === true && { insecureSkipVerify: true }),
    }
    const named = { ...value, metadata: { ...(value.metadata as Json), name: templateName(value, metric) } }
    const { status: _, ...plain } = named as Json
    const conversion = judged(MetricTemplate, plain, { provider, query }, [])
    if (!conversion.ok) return { ok: false, problems: conversion.problems.map(each => ({ ...each, path: at })) }
    objects.push(...conversion.objects)
    remarks.push(
      ...conversion.remarks,
      ...lost(metric, at, ["name", "provider", ...ofRollout], {
        count: "a metric is asked at each weight, once per interval",
        initialDelay: "write analysis.initialDelay in the Canary",
        consecutiveErrorLimit: "write analysis.errorLimit in the Canary",
        inconclusiveLimit: "a value is good or bad, and no data holds the weight",
      }),
      ...lost(prometheus, `${at}.provider.prometheus`, ["address", "query", "headers", "insecure"], {
        authentication: "write the credentials to a Secret, and name it in spec.provider.secretRef",
      }),
    )
  }
  return { ok: true, objects, remarks }
}

/** What the Canary says of a metric, and not its template. */
const ofRollout = ["interval", "successCondition", "failureCondition", "failureLimit"]

type Analysed = { readonly metrics: Json[]; readonly limit: number; readonly remarks: Remark[] }

/** The metrics of a Canary from what a Rollout names, where these templates stand in the same file. */
export function analysedBy(analysis: unknown, at: string, beside: readonly unknown[]): Analysed {
  if (!isObject(analysis)) return { metrics: [], limit: 0, remarks: [] }
  const remarks = lost(analysis, at, ["templates", "args"], {
    startingStep: "metrics are asked from the first weight on",
  })
  const metrics: Json[] = []
  let limit = 0
  const given = new Map(listOf(analysis.args).map(each => [String(each.name), each.value]))
  for (const [name, value] of given)
    if (typeof value !== "string")
      remarks.push({
        path: `${at}.args`,
        message: `lost: argument ${name} has no plain value: write templateVariables`,
      })
  for (const [index, { templateName: wanted, clusterScope }] of listOf(analysis.templates).entries()) {
    const path = `${at}.templates[${index}]`
    const found = beside.filter(isObject).find(each => each.kind === "AnalysisTemplate" && nameOf(each) === wanted)
    if (!found) {
      const what = clusterScope
        ? "ClusterAnalysisTemplates are not converted"
        : `AnalysisTemplate ${wanted} is not in this file`
      remarks.push({ path, message: `lost: ${what}` })
      continue
    }
    const defaults = listOf(isObject(found.spec) ? found.spec.args : undefined).map(each => [each.name, each.value])
    const values = [...(defaults as [string, unknown][]), ...given].filter(([, value]) => typeof value === "string")
    const templateVariables = Object.fromEntries(values.map(([name, value]) => [variable(name), value]))
    for (const metric of metricsOf(found).filter(prometheusOf)) {
      const range = rangeOf(metric)
      if (!range)
        remarks.push({
          path,
          message: `lost: the condition of metric ${metric.name} is not of the form result[0] >= NUMBER: write thresholdRange`,
        })
      const name = templateName(found, metric)
      metrics.push({
        ...{ name, templateRef: { name }, interval: secondsOf(metric.interval) ?? "1m" },
        ...(range && { thresholdRange: range }),
        ...(values.length > 0 && { templateVariables }),
      })
      limit = Math.max(limit, Number(metric.failureLimit ?? 0) || 0)
    }
  }
  return { metrics, limit, remarks }
}

/** `result[0] >= 0.95`, alone or with `&&`. A condition of failure says the opposite. */
function rangeOf({ successCondition, failureCondition }: Json): Json | undefined {
  const isSuccess = typeof successCondition === "string"
  const text = isSuccess ? successCondition : failureCondition
  if (typeof text !== "string" || (!isSuccess && text.includes("&&"))) return undefined
  const range: Json = {}
  for (const part of text.split("&&")) {
    const [, operator, number] = /^\s*result(?:\[0\])?\s*(>=|<=|>|<)\s*([0-9]+(?:\.[0-9]+)?)\s*$/.exec(part) ?? []
    if (operator === undefined) return undefined
    range[operator.startsWith(">") === isSuccess ? "min" : "max"] = Number(number)
  }
  return range
}

/** A duration of Argo, in seconds: `300`, `30s`, `5m`, `1h`. */
export function secondsOf(value: unknown): string | undefined {
  if (typeof value === "number") return `${value}s`
  const parts = typeof value === "string" ? [...value.matchAll(/([0-9]+)(h|m|s)/g)] : []
  const units: Readonly<Record<string, number>> = { h: 3600, m: 60, s: 1 }
  if (typeof value === "string" && /^[0-9]+$/.test(value)) return `${value}s`
  if (parts.length === 0 || parts.map(([all]) => all).join("") !== value) return undefined
  return `${parts.reduce((sum, [, count, unit]) => sum + Number(count) * units[unit!]!, 0)}s`
}
