import { canaryHolder } from "#core/canary/hold.ts"
import { parseMark, type WorkloadNote } from "#core/in-place/marks.ts"
import { inPlaceAnnotation, strategyAnnotation } from "#core/in-place/names.ts"
import { noteOf } from "#core/in-place/operation.ts"
import { formatInstant, type Instant } from "#lib/instant.ts"
import { counted, nameSome, sentence } from "#lib/text.ts"
import type { KubeObject } from "#runtime/resource.ts"
import { readWorkload, type Sight, typed, type WorkloadFacts } from "./facts.ts"
import { type PodStanding, type PodState, podStandings } from "./pods.ts"
import { updateReasons } from "./reasons.ts"
import { isAbout, type Standing, standingOf } from "./standing.ts"

export type WhyUpdate = {
  reason: string
  sentences: string[]
  since: Instant | undefined
  /** It is under way, or has ended without success: the answer comes before any other. */
  isPressing: boolean
}

/** How an update in place stands, for a person. Undefined for a workload that has nothing to do with one. */
export function whyUpdate(sight: Sight): WhyUpdate | undefined {
  const workload = readWorkload(sight.workload)
  if (!workload.isOptedIn && !workload.holder && !workload.note) return undefined
  const standing = standingOf(sight.workload)
  if (workload.holder?.by === canaryHolder) return whyUnderCanary(workload, standing)
  const pods = podStandings(sight)
  const { state, reason, operation } = standing
  const isOver = state === "Complete"
  const own = workload.hold ? noteOf(workload) : isAbout(workload) ? workload.note : undefined
  const marks = pods.flatMap(({ changedAt, operation: by }) => (changedAt && by === operation ? [changedAt] : []))
  return {
    reason: reason || state,
    sentences: [
      titleOf(workload, standing),
      ...(own ? changeWords(own, isOver) : []),
      ...verdictWords(standing),
      ...podWords(pods, isOver),
      ...wayOut(workload, standing),
    ],
    // Under way since the first pod was changed; over since the last.
    since: marks.length > 0 ? Math[isOver ? "max" : "min"](...marks) : undefined,
    isPressing: !isOver,
  }
}

function whyUnderCanary({ kind, namespace, name, holder }: WorkloadFacts, standing: Standing): WhyUpdate {
  const { state, reason, message } = standing
  const canary = holder!.name ?? "NAME"
  return {
    reason: reason || state,
    sentences: [
      `${kind} ${namespace}/${name} is held by Canary ${canary}: a change of its template is proven there first.`,
      ...(message ? [sentence(message)] : []),
      `How far it is, and what it waits for: aim why canary/${canary} -n ${namespace}.`,
    ],
    since: undefined,
    isPressing: state !== "Complete",
  }
}

const rests = {
  Standing: ", and is held between updates too (aim hold)",
  Lent: "; its own controller does a rolling update, and then its hold stands again",
  none: ", and is not held",
}

function titleOf({ kind, namespace, name, hold, rest, annotations }: WorkloadFacts, { operation }: Standing): string {
  const title = `${kind} ${namespace}/${name}`
  const by = operation === undefined ? "" : ` (operation ${operation})`
  if (hold) return `${title} is held for an update in place${by}.`
  const strategy = annotations[strategyAnnotation]
  const asks =
    strategy === undefined
      ? "asks for no updates in place"
      : `asks for updates in place with ${strategy}${rests[rest ?? "none"]}`
  return `${title} ${asks}${operation === undefined ? "" : `; its last one was operation ${operation}`}.`
}

/** A rollback of aim's own keeps the note of what has failed, and goes the other way. */
function changeWords({ from, to, reason, back, isTakenBack }: WorkloadNote, isOver: boolean): string[] {
  const isReversed = back !== undefined || reason === "RolledBack"
  const verb = isOver || reason === "RolledBack" ? "went" : "goes"
  return Object.entries(to).map(([container, image]) => {
    const [left, right] = isReversed ? [image, from[container]] : [from[container], image]
    const where = `from ${left ?? "none"} to ${right ?? "none"}`
    return `Container ${container} ${verb} ${isReversed || isTakenBack ? "back " : ""}${where}.`
  })
}

function verdictWords({ reason, message }: Standing): string[] {
  const meaning = Object.hasOwn(updateReasons, reason) ? updateReasons[reason as keyof typeof updateReasons] : ""
  const said = message === "" ? "" : sentence(message)
  return [said, meaning].filter(Boolean)
}

const stateWords: Readonly<Record<PodState, string>> = {
  Updated: "Updated",
  Restarting: "Restarting, and not proven yet",
  Starting: "New, and not ready yet",
  Drained: "Without traffic, about to be changed",
  Stale: "Not touched yet",
  Failed: "Failed",
  Reverted: "Failed and gone back to the image before",
}

const namesMost = 5

/** Pods by what became of them. */
function podWords(pods: readonly PodStanding[], isOver: boolean): string[] {
  if (isOver) return []
  const groups = Map.groupBy(pods, ({ state }) => state)
  return Object.entries(stateWords).flatMap(([state, words]) => {
    const group = groups.get(state as PodState) ?? []
    if (group.length === 0) return []
    const names = group.slice(0, namesMost).map(({ name, node, why }) => {
      const where = node === "" ? "on no node yet" : `on ${node}`
      return why ? `${name} ${where} (${why})` : `${name} ${where}`
    })
    return [`${words}: ${counted(group.length, "pod")}: ${nameSome(names, group.length)}.`]
  })
}

function wayOut(workload: WorkloadFacts, { state, reason }: Standing): string[] {
  const { kind, namespace, hold } = workload
  if (!hold) return []
  const title = `${typed(workload)} -n ${namespace}`
  const back = `aim rollback ${title} sets the template before; aim release ${title} gives it to the ${kind} controller.`
  if (state === "Stalled" || state === "Paused") return [`It does not go on without you: ${back}`]
  return reason === "ImageUnavailable" ? [`If the image is wrong, set another one: ${back}`] : []
}

/** What an update in place did to a pod, from the pod itself. */
export function whyPodChanged({ metadata }: KubeObject): string[] {
  const mark = parseMark(metadata.annotations?.[inPlaceAnnotation])
  if (!mark) return []
  const { operation, from, to, at, failed } = mark
  const changes = Object.entries(to).filter(([name, image]) => image !== from[name])
  const when = `at ${formatInstant(at)}`
  if (changes.length === 0)
    return [`Operation ${operation} of an update in place changed its labels or annotations ${when}.`]
  const words = changes.map(([name, image]) => `${name} from ${from[name] ?? "none"} to ${image}`).join(", ")
  return [
    failed === undefined
      ? `Operation ${operation} of an update in place restarted ${words} ${when}.`
      : `Operation ${operation} of an update in place had failed here (${failed}): it took back ${words} ${when}.`,
  ]
}
