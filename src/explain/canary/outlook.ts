import type { AlertProvider } from "#api/v1alpha1/alertprovider/index.ts"
import type { Canary, HookType } from "#api/v1alpha1/canary/index.ts"
import type { MetricTemplate } from "#api/v1alpha1/metrictemplate/index.ts"
import { addressesOf, addressesOfProvider, addressesOfTemplate, type NamedAddress } from "#core/canary/addresses.ts"
import { isMade } from "#core/canary/before.ts"
import { configRefsOf, isConfigMap, nameIn, type PodSpec } from "#core/canary/config-refs.ts"
import { type Finding, findingsOf, findingsOfTemplate } from "#core/canary/findings.ts"
import { hooksOf } from "#core/canary/gates.ts"
import { isOfComponent, providerOf } from "#core/canary/provider.ts"
import { ratioProblem } from "#core/canary/ratio.ts"
import { planned } from "#core/canary/rollout-plan.ts"
import { intervalOf } from "#core/canary/rounds.ts"
import { isRouter, type RouteObject, type Router } from "#core/canary/router.ts"
import { routerOf } from "#core/canary/routers/index.ts"
import { type Services, serviceNamesOf, serviceProblemsOf } from "#core/canary/services.ts"
import { notShared, placeOf } from "#core/canary/sharing.ts"
import { targetSizeAt } from "#core/canary/size-at.ts"
import { promotionAfter, type Strategy, strategyOf, weightsOf } from "#core/canary/steps.ts"
import { kindProblem } from "#core/canary/targets/problems.ts"
import { type Foreseen, foresee } from "#egress/index.ts"
import { parseDuration } from "#lib/duration.ts"

/** What a Canary will do, from its spec and what is around it. Nothing is concluded from what could not be read. */
export type Outlook = {
  readonly strategy: Strategy
  /** Objects that are made, adopted or changed. */
  readonly objects: readonly { readonly object: string; readonly what: string }[]
  /** What each step asks for; `pods` is absent where the workload is not known. */
  readonly stages: readonly Stage[]
  /** Weights on the way from the last step to all requests. */
  readonly promotion: readonly number[]
  /** How long the analysis takes at least. Pods take their own time. */
  readonly leastMs: number
  /** Hooks and approvals in the order in which a run comes to them. */
  readonly gates: readonly string[]
  readonly findings: readonly Finding[]
  readonly addresses: readonly { readonly field: string; readonly flag?: string; readonly why: string }[]
  /** ConfigMaps and Secrets of the template: what a change does, and whether both revisions read the same one. */
  readonly configs: readonly { readonly name: string; readonly isShared: boolean; readonly what: string }[]
}

export type Stage = {
  readonly weight: number
  readonly isMirrored: boolean
  readonly intervals: number
  readonly pods?: { readonly source: number; readonly target: number }
}

/** What was read around a Canary. */
export type Around = {
  readonly workload?: { readonly replicas: number; readonly pod: PodSpec } | "Missing" | undefined
  readonly services: Partial<Services>
  /** The policy by which new pods read snapshots is there. */
  readonly takesSnapshots?: boolean | undefined
  readonly route?: "There" | "Missing" | "NotServed" | undefined
  readonly rivals: readonly string[]
  template(place: Place): MetricTemplate | "Missing" | undefined
  provider(place: Place): AlertProvider | "Missing" | undefined
  isShared(namespace: string): boolean | undefined
}
type Place = { readonly namespace: string; readonly name: string }

export function outlookOf(written: Canary, around: Around): Outlook {
  const canary = planned(written)
  const { analysis, skipAnalysis } = canary.spec
  const full = typeof around.workload === "object" ? around.workload.replicas : undefined
  const stages = skipAnalysis ? [] : stagesOf(canary, full)
  const promotion = promotionOf(canary, stages.at(-1)?.weight ?? 0)
  const interval = intervalOf(canary)
  const delay = analysis.initialDelay ? (parseDuration(analysis.initialDelay) ?? interval) : interval
  const intervals = stages.reduce((sum, stage) => sum + stage.intervals, 0)
  const found = referred(canary, around)
  return {
    strategy: strategyOf(analysis),
    objects: objectsOf(canary, around),
    stages,
    promotion,
    leastMs: (intervals === 0 ? 0 : (intervals - 1) * interval + delay) + Math.max(0, promotion.length - 1) * interval,
    gates: gatesOf(canary),
    findings: [...aroundFindings(canary, around, full), ...findingsOf(written), ...found.findings],
    addresses: [
      ...reach(canary.metadata.namespace ?? "", addressesOf(written)),
      ...found.places.flatMap(({ namespace, addresses }) => reach(namespace, addresses)),
    ],
    configs: configsOf(canary, around),
  }
}

function configsOf({ metadata }: Canary, { workload, takesSnapshots }: Around): Outlook["configs"] {
  if (typeof workload !== "object") return []
  const { namespace = "" } = metadata
  return configRefsOf(workload.pod).map(({ key }) => {
    const isMap = isConfigMap(key)
    const isShared = !isMap || takesSnapshots === false
    const starts = isMap
      ? "a change starts a run"
      : `a change starts a run where aim grant ${namespace} --secrets ${nameIn(key)} allows it`
    const reads = isShared ? "both revisions read it" : "new pods of each revision read its snapshot"
    return { name: key, isShared, what: `${starts}; ${reads}` }
  })
}

function stagesOf(canary: Canary, full: number | undefined): Stage[] {
  const { analysis } = canary.spec
  const { iterations = 0, mirror } = analysis
  const stage = (weight: number, intervals = 1, isMirrored = false): Stage => ({
    weight,
    isMirrored,
    intervals,
    ...(full !== undefined && { pods: { source: full, target: targetSizeAt(canary, weight, full) } }),
  })
  const stages: Readonly<Record<Strategy, () => Stage[]>> = {
    Weighted: () => [...(mirror ? [stage(0, 1, true)] : []), ...weightsOf(analysis).map(weight => stage(weight))],
    HeaderOrCookie: () => [stage(100, iterations)],
    BlueGreen: () => [stage(0, iterations, mirror), stage(100)],
  }
  return stages[strategyOf(analysis)]()
}

/** From the last weight to 100. Where all requests are there already, nothing is left to move. */
function promotionOf(canary: Canary, last: number): number[] {
  const { analysis } = canary.spec
  const isPlain = providerOf(canary) === "kubernetes"
  // Matching requests are not all requests.
  let weight = strategyOf(analysis) === "HeaderOrCookie" ? 0 : last
  const weights: number[] = []
  while (weight < 100) {
    weight = isPlain ? 100 : promotionAfter(analysis, weight)
    weights.push(weight)
  }
  return weights
}

function objectsOf(canary: Canary, { services, route }: Around): Outlook["objects"] {
  const names = serviceNamesOf(canary)
  const { targetRef } = canary.spec
  const router = routerOf(canary)
  const made = (role: keyof Services, what: string) => ({
    object: `Service ${names[role]}`,
    what: `${standingOf(services[role])}; ${what}`,
  })
  const isPlain = isRouter(router) && router.kind.kind === "Service"
  return [
    made("apex", isPlain ? "its selector divides the requests" : "clients use it, its address stays"),
    made("source", "selects the running revision"),
    made("target", "selects the new revision"),
    ...(isRouter(router) && !isPlain
      ? [
          {
            object: `${router.kind.kind} ${names.apex}`,
            what: route === "There" ? "adopted; edited only where our backends stand" : "made; divides the requests",
          },
        ]
      : []),
    ...(isOfComponent(canary)
      ? [{ object: `${targetRef.kind} ${targetRef.name}`, what: "its number of pods, and that of the revision before" }]
      : []),
    ...(targetRef.kind === "Deployment" && !isOfComponent(canary)
      ? [
          { object: `Deployment ${targetRef.name}-REVISION`, what: "made for each run; its pods are handed over" },
          {
            object: `Deployment ${targetRef.name}`,
            what: "a change of its template is held in its author's own write",
          },
        ]
      : []),
  ]
}

const standingOf = (service: RouteObject | undefined) =>
  !service ? "made" : isMade(service) ? "there already" : "adopted"

/** In the order of a run. */
const places: readonly { hooks: HookType; approval?: "Rollout" | "TrafficIncrease" | "Promotion"; when: string }[] = [
  { hooks: "confirm-rollout", approval: "Rollout", when: "before the run starts" },
  { hooks: "pre-rollout", when: "before the first weight" },
  { hooks: "confirm-traffic-increase", approval: "TrafficIncrease", when: "before each weight" },
  { hooks: "rollout", when: "with each check" },
  { hooks: "rollback", when: "with each check; a yes ends the run" },
  { hooks: "confirm-promotion", approval: "Promotion", when: "before promotion" },
  { hooks: "post-rollout", when: "after the run" },
  { hooks: "event", when: "for each event" },
]

const gatesOf = (canary: Canary): string[] =>
  places.flatMap(({ hooks, approval, when }) => [
    ...hooksOf(canary, hooks).map(({ name, deadline, onDeadline }) => {
      const until = deadline ? `, at most ${deadline}, then ${onDeadline === "Fail" ? "it fails" : "it goes on"}` : ""
      return `hook ${name} (${hooks}), ${when}${until}`
    }),
    ...(approval && canary.spec.requireApproval.includes(approval)
      ? [`approval of a person (${approval}), ${when}: aim approve canary/${canary.metadata.name}`]
      : []),
  ])

const refused = (field: string, message: string): Finding => ({ field, message, kind: "Refused" })

const kindName = ({ kind, group, version }: Router["kind"]) => `${kind} of ${group}/${version}`

function aroundFindings(canary: Canary, around: Around, full: number | undefined): Finding[] {
  const { targetRef } = canary.spec
  const problem = kindProblem(canary, full ?? 0)
  const ratio = full === undefined ? undefined : ratioProblem(canary, full)
  const router = routerOf(canary)
  return [
    ...(problem ? [refused("spec.targetRef", problem.message)] : []),
    ...(around.workload === "Missing"
      ? [refused("spec.targetRef", `there is no ${targetRef.kind} ${targetRef.name} in this namespace`)]
      : []),
    ...(ratio ? [refused(`spec.${ratio.field}`, ratio.message)] : []),
    ...(around.route === "NotServed" && isRouter(router)
      ? [refused("spec.provider", `the cluster does not serve ${kindName(router.kind)}`)]
      : []),
    ...around.rivals.map(name => refused("spec.targetRef", `Canary ${name} has the same target: delete one of them`)),
    ...serviceProblemsOf(canary, around.services).map(({ message }) => refused("spec.service", message)),
  ]
}

type Referred = { findings: Finding[]; places: { namespace: string; addresses: readonly NamedAddress[] }[] }

/** Templates and AlertProviders: whether they are there and may be used, and what their own specs say. */
function referred(canary: Canary, around: Around): Referred {
  const own = canary.metadata.namespace ?? ""
  const { metrics, alerts } = canary.spec.analysis
  const found: Referred = { findings: [], places: [] }
  for (const [index, { templateRef }] of metrics.entries()) {
    if (!templateRef) continue
    const field = `spec.analysis.metrics[${index}].templateRef`
    const place = placeOf(templateRef, own)
    const template = use("MetricTemplate", field, place, around.template(place))
    if (!template) continue
    for (const { field: at, message } of findingsOfTemplate(template))
      found.findings.push(refused(field, `MetricTemplate ${place.name}, ${at}: ${message}`))
    found.places.push({ namespace: place.namespace, addresses: at(field, addressesOfTemplate(template)) })
  }
  for (const [index, { providerRef }] of alerts.entries()) {
    const field = `spec.analysis.alerts[${index}].providerRef`
    const place = placeOf(providerRef, own)
    const provider = use("AlertProvider", field, place, around.provider(place))
    if (provider) found.places.push({ namespace: place.namespace, addresses: at(field, addressesOfProvider(provider)) })
  }
  return found

  function use<T>(kind: string, field: string, place: Place, there: T | "Missing" | undefined): T | undefined {
    if (place.namespace !== own && around.isShared(place.namespace) === false) {
      found.findings.push({ field, message: notShared(kind, place), kind: "Missing" })
      return undefined
    }
    if (there !== "Missing") return there
    const message = `there is no ${kind} ${place.name} in namespace ${place.namespace}`
    found.findings.push({ field, message, kind: "Missing" })
    return undefined
  }

  function at(field: string, addresses: readonly NamedAddress[]): NamedAddress[] {
    return addresses.map(address => ({ ...address, field }))
  }
}

function reach(namespace: string, addresses: readonly NamedAddress[]): Outlook["addresses"][number][] {
  return addresses.flatMap(({ field, url, isUnchecked }) => {
    const seen: Foreseen = foresee({ namespace, url, isUnchecked })
    if (seen.need === "None") return []
    if (seen.need === "Change") return [{ field, why: seen.why }]
    return [{ field, flag: seen.flag, why: seen.isCertain ? seen.why : `${seen.why}, unless it is a public host` }]
  })
}
