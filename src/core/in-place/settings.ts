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

/** Reads all annotations, or returns what to write instead of the first that cannot be read. */
export function parseSettings(annotations: Annotations = {}): ParsedSettings {
  const problems: string[] = []
  const read = <T>(name: string, parse: (text: string) => T | undefined, instead: string): T | undefined => {
    const text = annotations[name]
    if (text === undefined) return undefined
    const value = parse(text.trim())
    if (value === undefined)
      problems.push(`annotation ${name} is ${JSON.stringify(text.slice(0, 80))}: write ${instead}`)
    return value
  }
  const names = settingAnnotations
  const strategy = read(strategyAnnotation, oneOf(strategies), strategies.join(", "))
  const maxUnavailable = read(names.maxUnavailable, positive, 'a number of pods such as "1", or a share such as "25%"')
  const partition = read(names.partition, amount, 'how many pods keep the old image, such as "2" or "50%"')
  const graceSeconds = read(names.graceSeconds, seconds, `seconds from "0" to "${graceSecondsMax}"`)
  const onFailure = read(names.onFailure, oneOf(failurePolicies), failurePolicies.join(", "))
  const order = read(names.order, labelName, 'the name of a pod label, such as "apps.kubernetes.io/pod-index"')
  const containerOrder = read(names.containerOrder, containerNames, 'names of containers, such as "sidecar,app"')
  const isUnverified = read(names.unverified, yesOrNo, '"true" or "false"')
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

const oneOf =
  <T extends string>(words: readonly T[]) =>
  (text: string): T | undefined =>
    words.find(word => word === text)

function amount(text: string): Amount | undefined {
  const found = /^(\d{1,6})(%?)$/.exec(text)
  if (!found) return undefined
  const value = Number(found[1])
  if (found[2] === "") return { count: value }
  return value <= 100 ? { percent: value } : undefined
}

const positive = (text: string): Amount | undefined => (/^0+%?$/.test(text) ? undefined : amount(text))

function seconds(text: string): number | undefined {
  return /^\d{1,4}$/.test(text) && Number(text) <= graceSecondsMax ? Number(text) : undefined
}

const labelName = (text: string): string | undefined =>
  /^([a-z0-9.-]{1,253}\/)?[A-Za-z0-9]([A-Za-z0-9._-]{0,61}[A-Za-z0-9])?$/.test(text) ? text : undefined

function containerNames(text: string): readonly string[] | undefined {
  const names = text.split(",").map(name => name.trim())
  const areNames = names.every(name => /^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$/.test(name))
  return areNames && new Set(names).size === names.length ? names : undefined
}

const yesOrNo = (text: string): boolean | undefined => (text === "true" ? true : text === "false" ? false : undefined)

/** Of so many pods. A share above zero is at least one pod. */
export function podsOf(amount: Amount, replicas: number): number {
  if ("count" in amount) return Math.min(amount.count, replicas)
  return amount.percent === 0 ? 0 : Math.max(1, Math.floor((replicas * amount.percent) / 100))
}
