import { alternateImageSources, workloadKinds } from "#controllers/alternateimagesource/resources.ts"
import { podFields, pods } from "#controllers/serviceimage/pods.ts"
import { canaries } from "#controllers/serviceimage/resources.ts"
import { both } from "#lib/shape.ts"
import { type Inventory, kindOf } from "../inventory.ts"
import { ownList } from "../plain.ts"
import type { ListOf, Reading } from "../reading.ts"
import { neededOfPod, neededOfSource, neededOfWorkload, neededToAsk } from "./needed.ts"

export type Wanted = {
  /** Without it, every namespace. */
  namespace?: string | undefined
  /** Workloads and pods are read even where there is no source, and pods that have succeeded too. */
  isAboutPod?: boolean
  /** With the names of pull secrets and service accounts. */
  asks?: boolean
}

/** AlternateImageSources and, where there is one, workloads and pods. */
export const readSources = (wanted: Wanted = {}): Reading => ({
  own: { resource: alternateImageSources, shape: neededOfSource, options: { namespace: wanted.namespace } },
  rest: seen => covered(seen, wanted),
})

/** What an AlternateImageSource covers. */
function covered(seen: Inventory, { namespace, isAboutPod, asks }: Wanted): ListOf[] {
  if (!isAboutPod && seen.of(kindOf(alternateImageSources)).size === 0) return []
  const more = asks ? neededToAsk : {}
  // Whether a Canary proves the pod. Where none is served or may be read, nothing is said of it.
  const proven = isAboutPod ? [ownList(canaries, namespace)] : []
  const running = isAboutPod ? {} : { fieldSelector: podFields.pods }
  return [
    ...proven,
    { resource: pods, shape: both(neededOfPod, more), options: { namespace, ...running } },
    ...workloadKinds.map(({ resource }) => ({
      resource,
      shape: both(neededOfWorkload, more),
      options: { namespace },
    })),
  ]
}
