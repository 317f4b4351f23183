import { type Strategy, settingAnnotations, strategies, strategyAnnotation } from "./names.ts"

export type FailurePolicy = "Stop" | "Revert" | "Rollback"

/** A number of pods, or a share of them. */
export type Amount = { readonly count: number } | { readonly percent: number }

/** How a workload is updated in place, as its annotations say. */
export type Settings = {
  readonly strategy: Strategy
  /** Undefined: what the workload's own strategy allows. */
  readonly maxUnavailable?: Amount
  /** Pods that keep the old image. */
  readonly partition: Amount
  /** Between readiness gate False and the restart. */
  readonly graceSeconds: number
  readonly onFailure: FailurePolicy
  /** A pod label: pods are updated in the order of its values. */
  readonly order?: string
  /** Containers that are updated one after another. */
  readonly containerOrder: readonly string[]
  /** Nodes without an agent are allowed: the image is not proven to be there. */
  readonly isUnverified: boolean
}

export type ParsedSettings = { ok: true; settings: Settings } | { ok: false; problem: string }

type Annotations = Readonly<Record<string, string>>

const failurePolicies: readonly FailurePolicy[] = ["Stop", "Revert", "Rollback"]
const graceSecondsMax = 3600

export type SettingRule = {
  readonly annotation: string
  /** What the value is like, between blanks: in RE2's syntax, since the API server checks it too. */
  readonly pattern: string
  readonly instead: string
}

const containerName = "[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?"
const count = "[1-9][0-9]{0,5}"
const percent = "([1-9][0-9]?|100)%"
const rule = (annotation: string, pattern: string, instead: string): SettingRule => ({ annotation, pattern, instead })

const rules = {
  strategy: rule(strategyAnnotation, strategies.join("|"), strategies.join(", ")),
  maxUnavailable: rule(
    settingAnnotations.maxUnavailable,
    `${count}|${percent}`,
    'a number of pods such as "1", or a share such as "25%"',
  ),
  partition: rule(
    settingAnnotations.partition,
    `0%?|${count}|${percent}`,
    'how many pods keep the old image, such as "2" or "50%"',
  ),
  graceSeconds: rule(
    settingAnnotations.graceSeconds,
    `0|[1-9][0-9]{0,2}|[12][0-9]{3}|3[0-5][0-9]{2}|${graceSecondsMax}`,
    `seconds from "0" to "${graceSecondsMax}"`,
  ),
  onFailure: rule(settingAnnotations.onFailure, failurePolicies.join("|"), failurePolicies.join(", ")),
  order: rule(
    settingAnnotations.order,
    "([a-z0-9.-]{1,253}/)?[A-Za-z0-9]([A-Za-z0-9._-]{0,61}[A-Za-z0-9])?",
    'the name of a pod label, such as "apps.kubernetes.io/pod-index"',
  ),
  containerOrder: rule(
    settingAnnotations.containerOrder,
    `${containerName}( *, *${containerName})*`,
    'names of containers, 32 at most, such as "sidecar,app"',
  ),
  unverified: rule(settingAnnotations.unverified, "true|false", '"true" or "false"'),
}

/** Every annotation by which an owner asks for updates in place. */
export const settingRules: readonly SettingRule[] = Object.values(rules)

/** Reads all annotations, or returns what to write instead of the first that cannot be read. */
export function parseSettings(annotations: Annotations = {}): ParsedSettings {
  const problems: string[] = []
  const read = <T>({ annotation, pattern, instead }: SettingRule, parse: (text: string) => T | undefined) => {
    const text = annotations[annotation]
    if (text === undefined) return undefined
    const value = new RegExp(`^(${pattern})$`).test(text.trim()) ? parse(text.trim()) : undefined
    if (value === undefined)
      problems.push(`annotation ${annotation} is ${JSON.stringify(text.slice(0, 80))}: write ${instead}`)
    return value
  }
  const strategy = read(rules.strategy, text => text as Strategy)
  const maxUnavailable = read(rules.maxUnavailable, amount)
  const partition = read(rules.partition, amount)
  const graceSeconds = read(rules.graceSeconds, Number)
  const onFailure = read(rules.onFailure, text => text as FailurePolicy)
  const order = read(rules.order, text => text)
  const containerOrder = read(rules.containerOrder, containerNames)
  const isUnverified = read(rules.unverified, text => text === "true")
  const [problem] = problems
  if (problem) return { ok: false, problem }
  return {
    ok: true,
    settings: {
      strategy: strategy ?? "Recreate",
      ...(maxUnavailable && { maxUnavailable }),
      partition: partition ?? { count: 0 },
      graceSeconds: graceSeconds ?? 0,
      onFailure: onFailure ?? "Revert",
      ...(order !== undefined && { order }),
      containerOrder: containerOrder ?? [],
      isUnverified: isUnverified ?? false,
    },
  }
}

const amount = (text: string): Amount =>
  text.endsWith("%") ? { percent: Number(text.slice(0, -1)) } : { count: Number(text) }

/** Each is looked for in each container of each pod. */
const namesMost = 32

/** A name that is there twice has no place in an order. */
function containerNames(text: string): readonly string[] | undefined {
  const names = text.split(",").map(name => name.trim())
  return names.length <= namesMost && new Set(names).size === names.length ? names : undefined
}

/** Of so many pods. A share above zero is at least one pod. */
export function podsOf(amount: Amount, replicas: number): number {
  if ("count" in amount) return Math.min(amount.count, replicas)
  return amount.percent === 0 ? 0 : Math.max(1, Math.floor((replicas * amount.percent) / 100))
}
