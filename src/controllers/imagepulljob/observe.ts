import type { ImagePullJob } from "#api/v1alpha1/imagepulljob/index.ts"
import type { PullJob, Selection } from "#core/pulls/board.ts"
import { splitImage } from "#core/pulls/image-name.ts"
import type { Look } from "#runtime/kind-controller.ts"
import { keyOf } from "#runtime/resource.ts"
import type { Memory } from "./controller.ts"
import type { Snapshot } from "./plan.ts"
import type { World } from "./world.ts"

/** Everything the plan is made from, at this moment. */
export function observe(
  { pulls, credentials }: Pick<World, "pulls" | "credentials">,
  { key, object, memory, now }: Look<ImagePullJob, Memory>,
): Snapshot {
  const { board } = pulls
  const host = splitImage(object.spec.image)?.host ?? ""
  return {
    job: object,
    view: board.view(key),
    isListed: pulls.isListed(),
    isOver: isOver(object),
    credentials: credentials.get(key),
    registry: {
      host,
      inFlight: board.budget.inFlight(host),
      limit: board.budget.limit(host, now),
      risesAt: board.budget.risesAt(host, now),
    },
    reportedAt: memory.reportedAt,
    now,
  }
}

/** It has ended. A job that is edited afterwards goes on. */
export const isOver = ({ metadata, status }: ImagePullJob) =>
  status?.completionTime !== undefined && status.observedGeneration === metadata.generation

/** What the board needs of a job; undefined for one that needs no work. */
export function pullJobOf(object: ImagePullJob): PullJob | undefined {
  const image = splitImage(object.spec.image)
  if (!image || isOver(object) || object.metadata.deletionTimestamp) return undefined
  const { uid = "", namespace = "" } = object.metadata
  return {
    key: keyOf(object.metadata),
    uid,
    namespace,
    image,
    priority: object.spec.priority,
    hasSecrets: object.spec.pullSecrets.length > 0,
    selection: selectionOf(object),
  }
}

function selectionOf({ spec: { selector, podSelector } }: ImagePullJob): Selection {
  if (podSelector) return { by: "Pods", selector: podSelector }
  if (selector?.names) return { by: "Names", names: selector.names }
  return selector ? { by: "Labels", selector } : { by: "All" }
}
