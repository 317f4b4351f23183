import type { ImageListPullJob } from "#api/v1alpha1/imagelistpulljob/index.ts"
import type { Instant } from "#lib/instant.ts"
import type { Client } from "#runtime/client/client.ts"
import { outcomeOf } from "#runtime/client/outcome.ts"
import type { Look } from "#runtime/kind-controller.ts"
import { apiVersionOf, controlledBy, nameOf } from "#runtime/resource.ts"
import type { Action, Plan, Snapshot } from "./plan.ts"
import { imageListPullJobs, imagePullJobs } from "./resources.ts"

export type Done = { readonly refused: string | undefined; readonly lookAgainAt?: Instant | undefined }

const againMs = 15_000

/** Makes, changes and deletes the jobs of a list. A write that is refused is tried again after a while. */
export async function apply(
  { client }: { client: Client },
  { list, now }: Snapshot,
  { actions, deletes }: Plan,
  { key }: Look<ImageListPullJob, unknown>,
): Promise<Done> {
  const { uid = "" } = list.metadata
  if (deletes) {
    await outcomeOf(client.delete(imageListPullJobs, nameOf(key), { uid, propagationPolicy: "Background" }))
    return { refused: undefined }
  }
  for (const action of actions) {
    const outcome = await outcomeOf<unknown>(write(client, list, action))
    if (outcome.is === "Refused") return { refused: outcome.error.said, lookAgainAt: now + againMs }
    if (outcome.is === "Unknown") return { refused: undefined, lookAgainAt: now + 1000 }
  }
  return { refused: undefined }
}

function write(client: Client, { metadata }: ImageListPullJob, action: Action): Promise<unknown> {
  const name = { name: action.name, namespace: metadata.namespace }
  if (action.do === "delete") {
    const { uid } = action.child
    return client.delete(imagePullJobs, name, { uid, propagationPolicy: "Background" })
  }
  if (action.do === "change") {
    // A field that the list no longer has is removed: a merge patch does so for null.
    const absent = Object.fromEntries(Object.keys(action.child.spec).map(field => [field, null]))
    const body = { metadata: { resourceVersion: action.child.resourceVersion }, spec: { ...absent, ...action.spec } }
    return client.patch(imagePullJobs, name, { type: "merge", body })
  }
  const owner = controlledBy(imageListPullJobs, metadata)
  return client.create(imagePullJobs, {
    apiVersion: apiVersionOf(imagePullJobs),
    kind: imagePullJobs.kind,
    metadata: {
      name: action.name,
      ...(metadata.namespace && { namespace: metadata.namespace }),
      ownerReferences: [owner],
    },
    spec: action.spec,
  } as never)
}
