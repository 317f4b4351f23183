import { revisionLabel } from "#core/in-place/names.ts"
import type { PodWrite } from "#core/in-place/next.ts"
import type { PodFacts } from "#core/in-place/pod.ts"
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
  return {
    title: `${kind.shortName}/${workload.name}`,
    kind: kind.kind,
    templates: [...used].map(({ template }) => template),
    before: before && !isSameTemplate(before, workload.template) ? before : undefined,
    isBack: workload.isObserved && before !== undefined && isSameTemplate(before, workload.template),
    obstacle: strange && `pod ${strange.name} is of revision "${keyIn(strange)}", and there is none of that name`,
    isEmpty: false,
    isFollowed: pods.every(pod => same.has(keyIn(pod))),
    ordinals: workload.ordinals,
    keeps: pod => same.has(keyIn(pod)),
    label: proven => (key !== undefined && isCounted(workload, pods, key) ? labelsFor(proven, key) : []),
    close: () => {
      const isPassed = key !== undefined && pods.every(pod => keyIn(pod) === key) && isFenced(kind, workload, pods, key)
      return isPassed ? { is: "Passed" } : { is: "Waiting", actions: [] }
    },
  }
}

const keyIn = ({ labels }: PodFacts) => labels[revisionLabel] ?? ""

/** A pod whose gate is still False is written twice otherwise, on condition of the same version. */
const labelsFor = (proven: readonly PodFacts[], revision: string): PodWrite[] =>
  proven.filter(pod => keyIn(pod) !== revision && !pod.gate?.isDrained).map(pod => ({ do: "label", pod, revision }))

/**
 * Its controller counts the labels, and the pods, that are there. Otherwise its cache may still show labels of an earlier
 * operation, which would pass for new ones when the user goes back (decision 35).
 */
function isCounted({ status }: HeldSet, pods: readonly PodFacts[], key: string): boolean {
  const labelled = pods.filter(pod => keyIn(pod) === key).length
  const { updated, strays } = status
  return status.pods + strays === pods.length && updated <= labelled && updated >= labelled - strays
}

const isFenced = (kind: SetKind, workload: HeldSet, pods: readonly PodFacts[], key: string) =>
  workload.status.updated === workload.replicas && isCounted(workload, pods, key) && kind.isSettled(workload)
