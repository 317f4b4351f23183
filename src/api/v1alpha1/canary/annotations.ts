import { group } from "../group.ts"

/** Annotations of a Canary by which a person lets a run go on or ends it. Each names a run, so that an old one has no effect. */

/** `{"operation": "RUN", "tiers": ["Rollout"], "checksum": "CHECKSUM"}`: which gates of which run are open. */
export const approvedAnnotation = `${group}/approved`
/** The user that wrote the approval. A policy compares it with the request, so that it is no other user's name. */
export const approvedByAnnotation = `${group}/approved-by`
/** The id of the run that is to go back. */
export const rollbackAnnotation = `${group}/rollback`
/** The id of a run that failed and is to be tried again. */
export const retryAnnotation = `${group}/retry`
/** Holds the run of this id. */
export const pausedAnnotation = `${group}/paused`
