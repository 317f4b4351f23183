import { noteOf, operationOf, short } from "#core/in-place/operation.ts"
import { changeOf, imagesOf, isSameTemplate, type PodTemplate, withoutHash } from "#core/in-place/template.ts"
import { counted } from "#lib/text.ts"
import type { Closing, Native } from "../kind.ts"
import type { Deployment, Revision } from "./facts.ts"

/** Writes to ReplicaSets. */
export type DeploymentAction =
  | { readonly do: "keepHistory"; readonly name: string; readonly hash: string; readonly of: Revision }
  | { readonly do: "deleteDouble"; readonly revision: Revision }
  | { readonly do: "flip"; readonly revision: Revision; readonly template: PodTemplate }

/** What the Deployment controller makes of a Deployment: by its ReplicaSets. */
export function nativeOf(workload: Deployment, revisions: readonly Revision[]): Native {
  const active = revisions.filter(({ replicas, running }) => replicas > 0 || running > 0)
  const [current] = active
  const isSame = ({ template }: Revision) => isSameTemplate(template, workload.template)
  let same: ReadonlySet<string> | undefined
  return {
    title: `deploy/${workload.name}`,
    kind: "Deployment",
    templates: current ? [current.template] : [],
    before: current?.template,
    obstacle:
      active.length > 1 ? `${counted(active.length, "ReplicaSet")} have pods: a rollout was under way` : undefined,
    // Pods that still end are nothing to wait for.
    isEmpty: !current || workload.replicas === 0,
    isFollowed: active.every(isSame),
    get isRolledOut() {
      // Without pods, the ReplicaSet that makes the next ones.
      return workload.isObserved && active.length <= 1 && (current ? isSame(current) : revisions.some(isSame))
    },
    keeps({ owner }) {
      // Reads the templates of old ReplicaSets, and is asked only after an update that was given up.
      same ??= new Set(revisions.filter(isSame).map(({ uid }) => uid))
      return same.has(owner)
    },
    flippedFrom: () => (current && isSame(current) ? keptOf(workload, current, revisions) : undefined),
    close: () => (current ? close(workload, current, revisions) : { is: "Passed", fence: 0 }),
  }
}

/** The newest revision without pods that this operation has changed into the present one. */
function keptOf(workload: Deployment, { uid }: Revision, revisions: readonly Revision[]): PodTemplate | undefined {
  const from = Object.entries(noteOf(workload)?.from ?? {})
  return revisions
    .filter(each => each.uid !== uid && each.replicas + each.running === 0)
    .sort((a, b) => Number(b.number) - Number(a.number))
    .map(({ template }) => template)
    .find(template => {
      const images = imagesOf(template)
      const isBefore = from.every(([name, image]) => images.get(name) === image)
      return isBefore && changeOf(withoutHash(template), workload.template).is === "InPlace"
    })
}

/**
 * What the ReplicaSet makes from now on has to be the same, and its Deployment has to know that before it is let go: a
 * controller that sees the release and not yet the flipped ReplicaSet would make another one.
 */
function close(workload: Deployment, current: Revision, revisions: readonly Revision[]): Closing {
  const others = revisions.filter(({ uid }) => uid !== current.uid)
  // An older ReplicaSet with this template would be taken for current, and get all pods.
  const doubles = others
    .filter(
      ({ template, replicas, running }) => replicas + running === 0 && isSameTemplate(template, workload.template),
    )
    .map((revision): DeploymentAction => ({ do: "deleteDouble", revision }))
  if (!isSameTemplate(current.template, workload.template)) {
    // A controller that has not seen the hold yet would miss its ReplicaSet, and make another one.
    if (!workload.isObserved) return { is: "Waiting", actions: [] }
    const isKept = others.some(({ template }) => isSameTemplate(template, current.template))
    const hash = short([workload.uid, withoutHash(current.template)])
    const history: DeploymentAction = { do: "keepHistory", name: `${workload.name}-${hash}`, hash, of: current }
    return {
      is: "Waiting",
      actions: [
        ...(isKept || !workload.keepsHistory || current.number === "" ? [] : [history]),
        ...doubles,
        { do: "flip", revision: current, template: workload.template },
      ],
    }
  }
  // It rises with every flip and is copied with our note only by a controller that sees this very ReplicaSet. The
  // Deployment's own generation would not do: it rises with every annotation.
  const fence = current.generation
  if (noteOf(workload)?.fence !== fence) return { is: "Asking", fence, actions: doubles }
  const isPassed = current.note?.fence === fence && current.note.operation === operationOf(workload)
  const isReady = doubles.length === 0 && isPassed && current.isObserved
  return isReady ? { is: "Passed", fence } : { is: "Waiting", actions: doubles }
}
