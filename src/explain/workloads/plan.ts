import { ownUnavailable, unavailableOf } from "#core/in-place/budget.ts"
import { inPlaceStrategies, strategyAnnotation } from "#core/in-place/names.ts"
import { nextWrites, type PodsSeen } from "#core/in-place/next.ts"
import type { PodFacts } from "#core/in-place/pod.ts"
import { podsOf as amountOf, parseSettings, type Settings } from "#core/in-place/settings.ts"
import { changeOf, imagesOf, labelsOf, type NotInPlace, type Touched } from "#core/in-place/template.ts"
import { type LabelSelector, selects } from "#lib/label-selector.ts"
import { counted, nameSome } from "#lib/text.ts"
import type { KubeObject } from "#runtime/resource.ts"
import { podsOf, readWorkload, revisionBefore, revisionsOf, type Sight, typed, type WorkloadFacts } from "./facts.ts"
import { agentsIn, targetOf } from "./pods.ts"
import { standingOf } from "./standing.ts"

/** What becomes of a change of a workload, or of the next one. */
export type Planned = {
  kind: string
  name: string
  namespace: string
  way:
    | "Nothing"
    | "InPlace"
    /** Its own controller makes other pods. */
    | "RollingUpdate"
    /** It stays as it is until a person acts. */
    | "Stopped"
    /** The server refuses the change. */
    | "Refused"
  reason: string
  message: string
  images: { container: string; from: string; to: string }[]
  /** Those that are updated in place, in this order. */
  pods: { name: string; node: string; isNext: boolean }[]
  /** Nodes of these pods that have no proof of the image. */
  nodes: { node: string; image: string; why: string }[]
  /** What keeps pods waiting now. */
  blockedBy: string[]
  /** Whatever else there is to know. */
  remarks: string[]
}

/** The plan of a change that the server refuses, in its own words. */
export const refusedPlan = (workload: KubeObject, message: string): Planned => {
  const { kind, name, namespace } = readWorkload(workload)
  const nothing = { images: [], pods: [], nodes: [], blockedBy: [], remarks: [] }
  return { kind, name, namespace, way: "Refused", reason: "Refused", message, ...nothing }
}

/** Whether the server holds a change in the write that makes it; undefined where that is not known. */
type Asked = { holds: boolean | undefined }

/**
 * What the controllers do about the template that the workload has in this sight, with the functions by which they
 * decide. For a change that is not written yet, the sight has the workload as it would be.
 */
export function planOf(sight: Sight, { holds }: Asked): Planned {
  const workload = readWorkload(sight.workload)
  const { kind, name, namespace, template, annotations, isOptedIn } = workload
  const revisions = revisionsOf(sight)
  const before = revisionBefore(revisions)
  const change = before ? changeOf(before.template, template) : ({ is: "None" } as const)
  const old = before ? imagesOf(before.template) : new Map<string, string>()
  const images = [...imagesOf(template)].flatMap(([container, to]) => {
    const from = old.get(container)
    return from === undefined || from === to ? [] : [{ container, from, to }]
  })
  const common = { kind, name, namespace, images, pods: [], nodes: [], blockedBy: [], remarks: [] }
  const parsed = parseSettings(annotations)
  if (change.is === "None" && !workload.hold) {
    const { reason, message } = standingOf(sight.workload)
    const remarks = isOptedIn && parsed.ok ? nextWords(workload, parsed.settings, holds) : []
    return { ...common, way: "Nothing", reason, message, remarks: parsed.ok ? remarks : [parsed.problem] }
  }
  if (!isOptedIn) return { ...common, ...notAsked(workload, change.is === "NotInPlace" ? change : undefined) }
  if (!parsed.ok)
    return {
      ...common,
      way: workload.hold ? "Stopped" : "RollingUpdate",
      reason: "InvalidAnnotation",
      message: parsed.problem,
    }
  const { settings } = parsed
  const stop = stoppedByOwner(workload)
  if (stop) return { ...common, way: "RollingUpdate", ...stop }
  if (holds === false && workload.rest === "Standing")
    return { ...common, way: "RollingUpdate", reason: "FellBackToRollingUpdate", message: takenAway(workload) }
  if (holds === false) return { ...common, way: "RollingUpdate", reason: "NotHeld", message: notHeld(workload) }
  const given = (reason: string, message: string): Planned => ({
    ...common,
    ...givenUp(workload, settings, reason, message),
  })
  const active = revisions.filter(({ pods }) => pods.length > 0)
  if (kind === "Deployment" && active.length > 1)
    return given("FellBackToRollingUpdate", `${counted(active.length, "ReplicaSet")} have pods: a rollout is under way`)
  if (change.is === "NotInPlace") return given("NotInPlace", `${change.path}: ${change.why}`)
  const maxUnavailable = maxUnavailableOf(workload, settings)
  if (change.is === "InPlace" && restartedBy(change).length > 0 && maxUnavailable === 0)
    return given(
      "NoBudget",
      `maxUnavailable allows no pod of ${workload.replicas} to restart: write in-place-max-unavailable, such as "1"`,
    )
  const planned = inPlace(sight, workload, settings, maxUnavailable)
  if (planned.pods!.length === 0 && planned.blockedBy!.length === 0) {
    const { reason, message } = standingOf(sight.workload)
    return { ...common, way: "Nothing", reason, message }
  }
  return { ...common, ...planned, ...(holds === undefined && unknownHold) }
}

/** By the kubelet for another image, by the agent for a label or annotation that a container reads. */
const restartedBy = ({ containers, restarts = [] }: Touched) => [...containers, ...restarts]

const unknownHold = {
  remarks: ["Whether the server holds it is not known: you may not patch it, so it could not be asked."],
}

const maxUnavailableOf = (workload: WorkloadFacts, settings: Settings) =>
  unavailableOf(ownUnavailable(workload.kind, workload.strategy, workload.replicas), settings, workload.replicas)

type Verdict = Pick<Planned, "way" | "reason" | "message"> & Partial<Planned>

function notAsked(workload: WorkloadFacts, obstacle: NotInPlace | undefined): Verdict {
  const { annotations, kind } = workload
  const given = annotations[strategyAnnotation]
  const message =
    given === undefined
      ? `pods are replaced by the ${kind} controller: it has no annotation ${strategyAnnotation}`
      : `pods are replaced by the ${kind} controller: ${strategyAnnotation} is ${given}`
  const remark = obstacle
    ? `In place it could not be done either: ${obstacle.path}: ${obstacle.why}.`
    : `In place it could be done: annotate it with ${strategyAnnotation}=${inPlaceStrategies[0]}.`
  return { way: "RollingUpdate", reason: "NotOptedIn", message, remarks: [remark] }
}

/** A pause, a partition or OnDelete of the owner is never touched. */
function stoppedByOwner({
  hold,
  isPaused,
  kind,
  strategy,
}: WorkloadFacts): Pick<Planned, "reason" | "message"> | undefined {
  if (hold) return undefined
  const native = "aim never holds it then; its own controller goes on when that is over"
  if (isPaused) return { reason: "Paused", message: `its owner has paused it: ${native}` }
  if (kind !== "Deployment" && strategy.type === "OnDelete")
    return {
      reason: "OnDelete",
      message: "its update strategy is OnDelete: pods that are deleted come back with the change",
    }
  if (kind === "StatefulSet" && (strategy.rollingUpdate?.partition ?? 0) > 0)
    return { reason: "Partition", message: `its owner has set a partition: ${native}` }
  return undefined
}

/** A manifest that names the stop takes it away. */
function takenAway({ kind }: WorkloadFacts): string {
  const field = kind === "Deployment" ? "spec.paused" : "spec.updateStrategy"
  return `this write takes its standing hold away, since it sets ${field}: the ${kind} controller makes other pods`
}

function notHeld(workload: WorkloadFacts): string {
  const { kind, namespace, rest } = workload
  if (rest === "Lent") return "its own controller does a rolling update; its hold stands again afterwards"
  const needed = `that takes Kubernetes 1.36 with the policies of aim (aim manifests policies) and a grant (aim grant ${namespace}), or aim hold ${typed(workload)}`
  const effect =
    kind === "Deployment" ? "its controller makes other pods at once" : "its controller re-creates its pods"
  return `the server does not hold it: ${needed}; ${effect}`
}

/** What the controllers do where a change cannot go in place. */
function givenUp(workload: WorkloadFacts, { strategy }: Settings, reason: string, message: string): Verdict {
  const { kind } = workload
  const isReleased = strategy === "InPlaceIfPossible"
  return {
    way: isReleased ? "RollingUpdate" : "Stopped",
    reason,
    message,
    remarks: [
      isReleased
        ? `It is released to the ${kind} controller, which makes other pods.`
        : `With InPlaceOnly it stays held until it is changed back; aim release ${typed(workload)} lets the ${kind} controller do it.`,
    ],
  }
}

function nextWords(workload: WorkloadFacts, settings: Settings, holds: boolean | undefined): string[] {
  const stop = stoppedByOwner(workload)
  if (stop) return [`The next change does not go in place: ${stop.message}.`]
  if (holds === undefined) return unknownHold.remarks
  if (!holds) return [`The next change does not go in place: ${notHeld(workload)}.`]
  const most = maxUnavailableOf(workload, settings)
  const limit =
    most === 0
      ? 'maxUnavailable allows no pod to restart: write in-place-max-unavailable, such as "1"'
      : `at most ${most} of ${counted(workload.replicas, "pod")} down at a time`
  return [`The next change of images, labels or annotations goes in place: ${limit}.`, ...standingWords(workload)]
}

/** Without a policy nothing puts the stop back that another write takes away. */
function standingWords({ kind, rest }: WorkloadFacts): string[] {
  if (rest !== "Standing") return []
  return kind === "Deployment"
    ? ["Its hold stands between updates; kubectl rollout resume, or a manifest with spec.paused, takes it away."]
    : [
        "Its hold stands between updates; a manifest with spec.updateStrategy takes it away, and then pods are replaced.",
      ]
}

function inPlace(sight: Sight, workload: WorkloadFacts, settings: Settings, maxUnavailable: number): Verdict {
  const { replicas, template } = workload
  const pods = podsOf(sight)
  const agents = agentsIn(sight)
  const covering = budgetsOver(sight.budgets, labelsOf(template) as Record<string, string>)
  const tightest = covering.toSorted((a, b) => a.allowed - b.allowed)[0]
  const target = targetOf(sight, revisionsOf(sight))
  const seen: PodsSeen = {
    pods,
    target,
    settings,
    replicas,
    maxUnavailable,
    disruptions: tightest && { budget: tightest.name, allowed: tightest.allowed },
    missingOn: () => undefined,
    noAgentOn: () => undefined,
    isAsked: () => true,
    ordinals: workload.ordinals,
    evidence: { digestOn: agents.digestOn, upSince: () => sight.now, drainedSince: () => sight.now, now: sight.now },
  }
  const next = nextWrites(seen)
  // Without budgets, all of them are next: in the order of the controller.
  const all = nextWrites({ ...seen, maxUnavailable: Number.POSITIVE_INFINITY, disruptions: undefined })
  const ordered = all.writes.flatMap(write => (write.do === "undrain" ? [] : [write.pod]))
  const now = new Set(next.writes.map(({ pod }) => pod.name))
  const containers = target.touched.containers.filter(name => target.images.has(name))
  const nodes = missingIn(ordered, containers, target.images, agents)
  const restarted = restartedBy(target.touched)
  const restarts =
    restarted.length === 0
      ? "no container restarts"
      : `${restarted.join(", ")} ${restarted.length === 1 ? "restarts" : "restart"}`
  const down = restarted.length > 0 ? `, at most ${maxUnavailable} of ${counted(replicas, "pod")} down at a time` : ""
  const kept = amountOf(settings.partition, replicas)
  return {
    way: "InPlace",
    reason: "InPlace",
    message: `the pods stay, ${restarts}${down}`,
    pods: ordered.map(({ name, node }) => ({ name, node, isNext: now.has(name) })),
    nodes,
    blockedBy: [
      ...budgetWords(covering),
      ...downWords(pods, seen, next.waiting),
      ...agentWords(nodes, settings),
      ...next.failures.map(({ pod, reason, message }) => `${pod} has failed: ${reason}, ${message}`),
    ],
    ...(kept > 0 && { remarks: [`in-place-partition keeps ${counted(kept, "pod")} on the old image.`] }),
  }
}

type Budget = { name: string; allowed: number }

function budgetsOver(budgets: readonly KubeObject[], labels: Readonly<Record<string, string>>): Budget[] {
  return budgets.flatMap(object => {
    const { spec, status } = object as { spec?: { selector?: LabelSelector }; status?: { disruptionsAllowed?: number } }
    if (!selects(spec?.selector, labels)) return []
    return [{ name: object.metadata.name, allowed: status?.disruptionsAllowed ?? 0 }]
  })
}

function budgetWords(covering: readonly Budget[]): string[] {
  if (covering.length > 1)
    return [
      `PodDisruptionBudgets ${covering.map(({ name }) => name).join(" and ")} cover the same pods, and Kubernetes then lets none of them go`,
    ]
  return covering.flatMap(({ name, allowed }) =>
    allowed > 0 ? [] : [`PodDisruptionBudget ${name} allows no disruption now`],
  )
}

function downWords(pods: readonly PodFacts[], { replicas, maxUnavailable }: PodsSeen, waiting: number): string[] {
  const down = pods.filter(({ isReady }) => !isReady)
  const missing = Math.max(0, replicas - pods.length)
  if (waiting === 0 || down.length + missing < maxUnavailable) return []
  const names = down.map(({ name }) => name)
  const which = [
    ...(names.length > 0 ? [`not ready: ${nameSome(names.slice(0, 3), names.length)}`] : []),
    ...(missing > 0 ? [`missing: ${missing}`] : []),
  ]
  const count = down.length + missing
  return [
    `maxUnavailable is ${maxUnavailable}, and ${counted(count, "pod")} ${count === 1 ? "is" : "are"} down (${which.join("; ")})`,
  ]
}

const noAgent = "no agent"

function missingIn(
  pods: readonly PodFacts[],
  containers: readonly string[],
  images: ReadonlyMap<string, string>,
  { imageOn }: ReturnType<typeof agentsIn>,
): Planned["nodes"] {
  const nodes = new Map<string, Planned["nodes"][number]>()
  for (const pod of pods)
    for (const name of containers) {
      const image = images.get(name)!
      if (pod.node === "" || !pod.containers.has(name) || pod.containers.get(name)!.image === image) continue
      const found = imageOn(pod.node, image)
      if (found.is === "Present") continue
      const why = found.is === "NoAgent" ? noAgent : found.why
      nodes.set(`${pod.node} ${image}`, { node: pod.node, image, why })
    }
  return [...nodes.values()]
}

function agentWords(nodes: Planned["nodes"], { isUnverified }: Settings): string[] {
  const without = [...new Set(nodes.filter(({ why }) => why === noAgent).map(({ node }) => node))]
  if (without.length === 0 || isUnverified) return []
  return [
    `no agent has answered on ${nameSome(without.slice(0, 3), without.length)} (aim manifests agent; in-place-unverified allows it)`,
  ]
}
