import type { Instant } from "#lib/instant.ts"
import { type LabelSelector, selects } from "#lib/label-selector.ts"
import { counted, nameSome } from "#lib/text.ts"

/** A pod of the workload that is restarted. */
export type RestartPod = {
  readonly name: string
  readonly uid: string
  readonly labels: Readonly<Record<string, string>>
  readonly isReady: boolean
  /** It is being deleted, or has ended. */
  readonly isGoing: boolean
  readonly createdAt: Instant
}

/** A ContainerRecreateRequest, as far as a restart is concerned. */
export type RestartRequest = {
  readonly name: string
  readonly pod: string
  /** Which pod of that name, once it is recorded. */
  readonly podUid: string | undefined
  /** Made for this restart. */
  readonly isOurs: boolean
  readonly createdAt: Instant
  readonly result: "Open" | "Succeeded" | "Failed" | "PodGone"
}

/** A PodDisruptionBudget. */
export type DisruptionBudget = {
  readonly name: string
  readonly selector: LabelSelector | undefined
  /** Its status is about its last generation. */
  readonly isCurrent: boolean
  readonly disruptionsAllowed: number
  /** How many of the pods it expects may be down at all. */
  readonly mayBeDown: number
}

export type RestartSight = {
  readonly pods: readonly RestartPod[]
  readonly requests: readonly RestartRequest[]
  readonly budgets: readonly DisruptionBudget[]
  /** How many pods the workload should have. */
  readonly wanted: number
  readonly maxUnavailable: number
  /** Requests that had failed before this attempt: their pods are tried again. */
  readonly forgiven: ReadonlySet<string>
}

export type RestartStep = {
  /** Pods that get a request now. An attempt after a failed one has a request of its own. */
  readonly begin: readonly { pod: RestartPod; attempt: number }[]
  readonly underWay: readonly RestartRequest[]
  readonly done: readonly RestartRequest[]
  readonly failed: readonly RestartRequest[]
  /** Pods without a request after this step. */
  readonly left: readonly RestartPod[]
  /** Why none gets one now, while none is under way. */
  readonly waitsFor: string | undefined
  readonly isOver: boolean
}

/**
 * Decides which pods of a workload are restarted next. A pod that is not ready comes first and lowers no budget. A ready
 * pod needs room in `maxUnavailable` and in every PodDisruptionBudget that selects it. After a failure no further pod
 * begins.
 */
export function nextRestarts(sight: RestartSight): RestartStep {
  const ours = sight.requests.filter(({ isOurs }) => isOurs)
  const underWay = ours.filter(({ result }) => result === "Open")
  const done = ours.filter(({ result }) => result === "Succeeded")
  const failed = ours.filter(({ name, result }) => result === "Failed" && !sight.forgiven.has(name))
  const waiting = waitingPods(sight, ours)
  const { begin, hold } = failed.length > 0 ? { begin: [], hold: undefined } : choose(sight, waiting, underWay.length)
  const left = waiting.filter(pod => !begin.includes(pod))
  return {
    begin: begin.map(pod => ({ pod, attempt: requestsFor(pod, ours).length + 1 })),
    underWay,
    done,
    failed,
    left,
    waitsFor: begin.length === 0 && underWay.length === 0 ? hold : undefined,
    isOver: underWay.length === 0 && (failed.length > 0 || waiting.length === 0),
  }
}

/** In the order of their turns. */
function waitingPods({ pods, forgiven }: RestartSight, ours: readonly RestartRequest[]): RestartPod[] {
  // Both times are of the API server's clock.
  const startedAt = Math.min(...ours.map(({ createdAt }) => createdAt))
  const isWaiting = (pod: RestartPod) => {
    const last = requestsFor(pod, ours).at(-1)
    if (pod.isGoing) return false
    // A pod that was created since has new containers already.
    if (!last) return pod.createdAt <= startedAt
    const isSame = last.podUid === undefined || last.podUid === pod.uid
    return isSame && last.result === "Failed" && forgiven.has(last.name)
  }
  return pods.filter(isWaiting).sort((a, b) => Number(a.isReady) - Number(b.isReady) || byName(a, b))
}

const requestsFor = ({ name }: RestartPod, requests: readonly RestartRequest[]) =>
  requests.filter(({ pod }) => pod === name).sort((a, b) => a.createdAt - b.createdAt || byName(a, b))

/** `web-2` comes before `web-10`. */
const byName = (a: { name: string }, b: { name: string }) =>
  a.name.localeCompare(b.name, "en", { numeric: true }) || (a.name < b.name ? -1 : 1)

/** Costs as much as the workload has pods, however many of them wait. */
function choose(sight: RestartSight, waiting: readonly RestartPod[], underWay: number) {
  const { pods, requests, wanted, maxUnavailable } = sight
  const requested = new Set(requests.filter(({ result }) => result === "Open").map(({ pod }) => pod))
  const isAvailable = (pod: RestartPod) => pod.isReady && !pod.isGoing && !requested.has(pod.name)
  const rooms = sight.budgets.map(budget => ({ ...budget, room: roomIn(budget, pods, isAvailable) }))
  const down = pods.filter(pod => !isAvailable(pod)).map(({ name }) => name)
  let unavailable = wanted - (pods.length - down.length)
  const begin: RestartPod[] = []
  let hold: string | undefined
  for (const pod of waiting) {
    if (underWay + begin.length >= maxUnavailable) break
    if (requested.has(pod.name)) {
      hold ??= `another request for pod ${pod.name} is not complete`
      continue
    }
    if (pod.isReady) {
      if (unavailable >= maxUnavailable) {
        hold ??= noRoom(unavailable, down, sight)
        break
      }
      const selected = rooms.filter(({ selector }) => selects(selector, pod.labels))
      const full = selected.find(({ room }) => room <= 0)
      if (full) {
        hold ??= `PodDisruptionBudget ${full.name} allows no disruption now`
        continue
      }
      for (const budget of selected) budget.room--
      unavailable++
    }
    begin.push(pod)
  }
  return { begin, hold }
}

function noRoom(unavailable: number, down: readonly string[], { wanted, maxUnavailable }: RestartSight): string {
  const names = down.length > 0 ? ` (${nameSome(down.slice(0, 3), down.length)})` : ""
  return `${unavailable} of ${counted(wanted, "pod")} ${unavailable === 1 ? "is" : "are"} not ready${names}, and --max-unavailable is ${maxUnavailable}`
}

/**
 * How many more ready pods a budget lets go. A pod stays ready for a moment after its request was made, and the status
 * of the budget follows later still. So pods with a request are counted here as well.
 */
function roomIn(
  { selector, isCurrent, disruptionsAllowed, mayBeDown }: DisruptionBudget,
  pods: readonly RestartPod[],
  isAvailable: (pod: RestartPod) => boolean,
): number {
  if (!isCurrent) return 0
  const down = pods.filter(pod => selects(selector, pod.labels) && !isAvailable(pod))
  const announced = down.filter(({ isReady, isGoing }) => isReady && !isGoing)
  return Math.min(disruptionsAllowed - announced.length, mayBeDown - down.length)
}
