const prefix = "autoimagemanager.io"

/** Annotations by which the owner of a workload asks for updates in place, and says how. */
export const strategyAnnotation = `${prefix}/update-strategy`
export const settingAnnotations = {
  maxUnavailable: `${prefix}/in-place-max-unavailable`,
  partition: `${prefix}/in-place-partition`,
  graceSeconds: `${prefix}/in-place-grace-seconds`,
  onFailure: `${prefix}/in-place-on-failure`,
  order: `${prefix}/in-place-order`,
  containerOrder: `${prefix}/in-place-container-order`,
  unverified: `${prefix}/in-place-unverified`,
} as const

export const strategies = ["InPlaceIfPossible", "InPlaceOnly", "Recreate"] as const
export type Strategy = (typeof strategies)[number]
/** Under these a change of the template is held. */
export const inPlaceStrategies: readonly Strategy[] = ["InPlaceIfPossible", "InPlaceOnly"]

/**
 * On a held workload: the annotation has what to give back and which part of aim holds; the label of the same name lets
 * the server select held workloads, so that a cluster without any costs an empty watch.
 */
export const heldMark = `${prefix}/held`
export const inPlaceHolder = "in-place"

/** The partition of a held StatefulSet: above every ordinal, so that its controller replaces no pod. */
export const everyOrdinal = 2_147_483_647

/** The label by which the controllers of StatefulSets and DaemonSets find the revision of a pod. */
export const revisionLabel = "controller-revision-hash"

/** On a workload and on its pods: what was done, from what to what, and how it stands. */
export const inPlaceAnnotation = `${prefix}/in-place`

/** On a pod: the operation that changed it last. */
export const updateStateLabel = `${prefix}/update-state`

/** Why the readiness gate of a pod is False. The part of aim that wrote it is the part that sets it to True again. */
export const gateReason = "InPlaceUpdate"
