import { revisionLabel } from "#core/in-place/names.ts"
import type { PodWrite } from "#core/in-place/next.ts"
import type { EndingPod, PodFacts } from "#core/in-place/pod.ts"
import { isSameTemplate, type PodTemplate } from "#core/in-place/template.ts"
import type { Native } from "../kind.ts"
import type { HeldSet, SetRevision } from "./facts.ts"

/** What differs between the controllers of StatefulSets and DaemonSets. */
export type SetKind = {
  readonly kind: string
  readonly shortName: string
  /** The label of pods of a revision. */
  keyOf(revision: SetRevision): string
  /** The revision that its controller has made, or found, for the template. */
  wanted(workload: HeldSet, revisions: readonly SetRevision[]): SetRevision | undefined
  /** The template before the change. */
  before(workload: HeldSet, revisions: readonly SetRevision[], used: ReadonlySet<SetRevision>): PodTemplate | undefined
  /** Its controller counts the label of a pod that is being deleted. */
  readonly countsEnding: boolean
  /** Nothing is left that its controller would do on its own account. */
  isSettled(workload: HeldSet): boolean
}

/**
 * What the controller of a set makes of it: a pod is of the revision that its label names, and without the hold every
 * pod of another revision is replaced. So the label is the flip, and the fence is that the status counts all of them.
 */
export function nativeOf(
  kind: SetKind,
  workload: HeldSet,
  revisions: readonly SetRevision[],
  pods: readonly PodFacts[],
  ending: readonly EndingPod[],
): Native {
  const byKey = new Map(revisions.map(revision => [kind.keyOf(revision), revision]))
  const revisionOf = (pod: PodFacts) => byKey.get(keyIn(pod))
  const isSame = ({ template }: SetRevision) => isSameTemplate(template, workload.template)
  const used = new Set(pods.flatMap(pod => revisionOf(pod) ?? []))
  const same = new Set(revisions.filter(isSame).map(kind.keyOf))
  const strange = pods.find(pod => !revisionOf(pod))
  // An older report is about another template, and of a controller that may not know of the hold.
  const wanted = workload.isObserved ? kind.wanted(workload, revisions.filter(isSame)) : undefined
  const key = wanted && kind.keyOf(wanted)
  const before = kind.before(workload, revisions, used)
  const isCounted = key !== undefined && isCountedAs(workload, pods, ending, { key, countsEnding: kind.countsEnding })
  const isFenced = () => isCounted && workload.status.updated === workload.replicas && kind.isSettled(workload)
  const isClosed = () => isFenced() && pods.every(pod => keyIn(pod) === key)
  return {
    title: `${kind.shortName}/${workload.name}`,
    kind: kind.kind,
    templates: [...used].map(({ template }) => template),
    before: before && !isSameTemplate(before, workload.template) ? before : undefined,
    isBack: workload.isObserved && before !== undefined && isSameTemplate(before, workload.template),
    obstacle: strange && `pod ${strange.name} is of revision "${keyIn(strange)}", and there is none of that name`,
    isEmpty: false,
    isFollowed: pods.every(pod => same.has(keyIn(pod))),
    get isRolledOut() {
      return isClosed()
    },
    ordinals: workload.ordinals,
    keeps: pod => same.has(keyIn(pod)),
    label: proven => (isCounted ? labelsFor(proven, key) : []),
    close() {
      if (isClosed()) return { is: "Passed", fence: wanted!.number }
      return { is: "Waiting", actions: [], pod: stuckOf(pods, ending) }
    },
  }
}

/** The pod that has to be gone, or ready, before its controller goes on. */
function stuckOf(pods: readonly PodFacts[], [gone]: readonly EndingPod[]): string | undefined {
  if (gone) return `pod ${gone.name}, which is being deleted on node ${gone.node || "none"}`
  const down = pods.find(({ isReady }) => !isReady)
  return down && `pod ${down.name}, which is not ready on node ${down.node || "none"}`
}

const keyIn = ({ labels }: Pick<PodFacts, "labels">) => labels[revisionLabel] ?? ""

/** A pod whose gate is still False is written twice otherwise, on condition of the same version. */
const labelsFor = (proven: readonly PodFacts[], revision: string): PodWrite[] =>
  proven.filter(pod => keyIn(pod) !== revision && !pod.gate?.isDrained).map(pod => ({ do: "label", pod, revision }))

/**
 * Its controller counts the labels, and the pods, that are there. Otherwise its cache may still show labels of an earlier
 * operation, which would pass for new ones when the user goes back (decision 35).
 */
function isCountedAs(
  { status }: HeldSet,
  pods: readonly PodFacts[],
  ending: readonly EndingPod[],
  { key, countsEnding }: { key: string; countsEnding: boolean },
): boolean {
  const labelled = [...pods, ...(countsEnding ? ending : [])].filter(pod => keyIn(pod) === key).length
  const { updated, strays } = status
  // A pod on a lost node is being deleted for as long as the node is lost: it is counted, and not waited for.
  return status.pods + strays === pods.length + ending.length && updated <= labelled && updated >= labelled - strays
}
