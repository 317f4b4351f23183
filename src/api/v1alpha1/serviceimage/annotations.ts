import { group } from "../group.ts"

/** Annotations that start or allow something. Each names an operation or a generation, so that an old one has no effect. */

/** On a ServiceImage: `{"operation": "g5", "tiers": ["early", ""]}`, which tiers of which operation may start. */
export const approvedAnnotation = `${group}/approved`
/** On a ServiceImage: the id of the operation to roll back. */
export const rollbackAnnotation = `${group}/rollback`
/** On a ServiceImage or a workload: the id of an operation that was rolled back and is to be tried again. */
export const retryAnnotation = `${group}/retry`
/** On a ServiceImage, with `serialize: Enforce`: the generation that this change may overtake although it is in progress. */
export const supersedeAnnotation = `${group}/supersede`

/** On a target: written by a new leader, so that no write of its predecessor still matches the object. */
export const fenceAnnotation = `${group}/fence`

/** On a Deployment, StatefulSet or DaemonSet: what `failureHaltsUpdate` and `manuallySpecifiedImage` are to custom kinds. */
export const failureHaltsUpdateAnnotation = `${group}/failure-halts-update`
export const manuallySpecifiedImageAnnotation = `${group}/manually-specified-image`
