/** A kind of Kubernetes that makes pods, directly or through another. */
export type WorkloadKind = {
  readonly group: string
  readonly version: string
  readonly kind: string
  readonly plural: string
  readonly scope: "Namespaced"
  readonly shortNames: readonly string[]
  /** The kind in lower case, as targets of an AlternateImageSource name it. */
  readonly name: string
  /** A ServiceImage can stamp it. */
  readonly isTarget: boolean
  /** Its template can be changed. */
  readonly hasTemplate: boolean
  /** A changed template makes new pods by itself. */
  readonly replacesPods: boolean
  /** Its controller replaces pods that were made from an older template, once they run, and finds them by a label. */
  readonly hasRevisions: boolean
}

type Traits = Partial<Pick<WorkloadKind, "isTarget" | "hasTemplate" | "replacesPods" | "hasRevisions" | "shortNames">>

const workload = (group: string, kind: string, traits: Traits = {}): WorkloadKind => ({
  group,
  version: "v1",
  kind,
  plural: `${kind.toLowerCase()}s`,
  scope: "Namespaced",
  shortNames: [],
  name: kind.toLowerCase(),
  isTarget: false,
  hasTemplate: true,
  replacesPods: false,
  hasRevisions: false,
  ...traits,
})

/** Every kind of Kubernetes that owns pods. All lists of workload kinds come from this one. */
export const workloadKinds: readonly WorkloadKind[] = [
  workload("apps", "Deployment", { shortNames: ["deploy"], isTarget: true, replacesPods: true }),
  workload("apps", "StatefulSet", { shortNames: ["sts"], isTarget: true, hasRevisions: true }),
  workload("apps", "DaemonSet", { shortNames: ["ds"], isTarget: true, replacesPods: true }),
  workload("apps", "ReplicaSet", { shortNames: ["rs"] }),
  workload("batch", "Job", { hasTemplate: false }),
  workload("batch", "CronJob", { shortNames: ["cj"] }),
]

export const workloadKind = (kind: string): WorkloadKind | undefined => workloadKinds.find(each => each.kind === kind)
