import type { PodWrite } from "#core/in-place/next.ts"
import type { EndingPod, PodFacts } from "#core/in-place/pod.ts"
import type { PodTemplate } from "#core/in-place/template.ts"
import type { Client } from "#runtime/client/client.ts"
import type { Outcome } from "#runtime/client/outcome.ts"
import type { KubeObject, Resource } from "#runtime/resource.ts"
import type { DeploymentAction } from "./deployment/native.ts"
import type { Owned, Workload } from "./facts.ts"
import type { Action } from "./plan.ts"

/** What differs between the kinds (decision 69): template, revision, hold, flip and fence. */
export type Adapter<W extends Workload = Workload, R extends Owned = Owned> = {
  readonly resource: Resource
  /** The objects in which its own controller keeps templates. */
  readonly revisions: Resource
  read(object: object): W
  /** Undefined for one that is not of this kind, or is being deleted. */
  readRevision(object: KubeObject): R | undefined
  /** The uids of the objects that own its pods. */
  podOwners(workload: W, revisions: readonly R[]): readonly string[]
  /** The name of the workload to which a pod with an owner of this name belongs. */
  workloadOf(podOwner: string, revisionOf: (name: string) => R | undefined): string | undefined
  /** `ending`: pods that are being deleted, which its controller may count. */
  native(workload: W, revisions: readonly R[], pods: readonly PodFacts[], ending: readonly EndingPod[]): Native
  /** The fields of its spec that give it back to its own controller. */
  releasedSpec(workload: W): object
  /** Carries out what only this kind writes. */
  write?(client: Client, workload: W, action: DeploymentAction): Promise<Outcome<unknown>>
}

/** What the workload's own controller makes of it: facts that the plan needs, whatever the kind. */
export type Native = {
  /** As commands name it: `deploy/web`. */
  readonly title: string
  readonly kind: string
  /** Templates that its pods were made from. The change is judged against each of them. */
  readonly templates: readonly PodTemplate[]
  /** The template before the change: a rollback writes it. */
  readonly before: PodTemplate | undefined
  /** The same after the flip, where it is kept: asked only when a pod fails then. */
  flippedFrom?(): PodTemplate | undefined
  /** The template of before is back, and some pods already count as of the other one. */
  readonly isBack?: boolean
  /** Why pods cannot be changed in place now. */
  readonly obstacle: string | undefined
  /** There are no pods, and none are to come. */
  readonly isEmpty: boolean
  /** Every pod counts as one of the workload's template. */
  readonly isFollowed: boolean
  /** Its controller has made every pod one of the workload's template, and has reported so. */
  readonly isRolledOut: boolean
  /** Its pods have ordinals, and go from the highest. */
  readonly ordinals?: { readonly isStrict: boolean } | undefined
  /** Without the hold its controller takes this pod for one of the workload's template, and leaves it alone. */
  keeps(pod: PodFacts): boolean
  /** Labels for pods that are proven, where its controller finds revisions by a label and none has to wait. */
  label?(proven: readonly PodFacts[]): readonly PodWrite[]
  /** What is left once every pod is done, beside the labels. */
  close(): Closing
}

export type Closing =
  /** These writes, or none: its controller has something to see first. `pod`: a pod that keeps it, and how. */
  | { readonly is: "Waiting"; readonly actions: readonly Action[]; readonly pod?: string | undefined }
  /** The workload's note has to carry this number: its controller copies it. */
  | { readonly is: "Asking"; readonly fence: number; readonly actions: readonly Action[] }
  /** Its controller has seen everything: this number of it. */
  | { readonly is: "Passed"; readonly fence: number }
