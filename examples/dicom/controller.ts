import type { Client } from "#runtime/client/client.ts"
import type { Controller } from "#runtime/controller.ts"
import { apiVersionOf, type KubeObject } from "#runtime/resource.ts"
import { Deployments, toDeployment } from "./deployment.ts"
import { type Dicom, Dicoms, toDicom } from "./dicom.ts"
import { type Action, plan } from "./plan.ts"

/** The field manager: server-side apply removes fields that we no longer send, and leaves those of other managers alone. */
const fieldManager = "dicom-controller"

/**
 * Gives every Dicom a Deployment of the same name, and reports the progress of that Deployment on the Dicom. Reads
 * Dicoms and Deployments; writes Deployments and the status of Dicoms, and never the spec: that is the user's and the
 * ServiceImage's.
 */
export const dicomController = (scope: { namespace?: string } = {}): Controller => ({
  name: "dicom",
  permissions: [
    { resource: Dicoms, verbs: ["list", "watch"] },
    { resource: Dicoms, subresource: "status", verbs: ["patch"] },
    { resource: Dicoms, subresource: "finalizers", verbs: ["update"] }, // what blockOwnerDeletion asks for
    { resource: Deployments, verbs: ["list", "watch", "create", "patch"] },
  ],
  concurrency: 8,
  setup({ watch, enqueue, client, clock, signal }) {
    const dicoms = watch(Dicoms, { project: toDicom, ...scope })
    const deployments = watch(Deployments, { project: toDeployment, ...scope })
    // A Deployment has the name of its Dicom, so a change of either is a reason to look at that one key.
    dicoms.subscribe(({ key, initial }) => enqueue(key, { background: initial }))
    deployments.subscribe(({ key, initial }) => enqueue(key, { background: initial }))
    return {
      async reconcile(key) {
        const dicom = dicoms.get(key)
        if (!dicom) return // deleted since it was queued, or a Deployment that is none of ours
        for (const action of plan({ dicom, deployment: deployments.get(key), now: clock.now() })) {
          const written = await act(client, dicom, action)
          // The next reconcile of this key must see this write, or it would repeat it.
          const cache = action.do === "report" ? dicoms : deployments
          await cache.reached(dicom, written.metadata.resourceVersion ?? "", signal)
        }
      },
    }
  },
})

/** Both writes are conditional on the version that was read: a stale cache ends in a conflict and another reconcile. */
function act(client: Client, { name, namespace, uid, resourceVersion }: Dicom, action: Action): Promise<KubeObject> {
  if (action.do === "report") {
    const metadata = { name, namespace, uid, resourceVersion }
    const body = { apiVersion: apiVersionOf(Dicoms), kind: Dicoms.kind, metadata, status: action.status }
    return client.patch(Dicoms, metadata, { type: "apply", body, force: true }, { subresource: "status", fieldManager })
  }
  const { deployment } = action
  const metadata = { ...deployment.metadata, ...(action.uid && { uid: action.uid }) }
  return client.patch(
    Deployments,
    metadata,
    { type: "apply", body: { ...deployment, metadata }, force: true },
    { fieldManager },
  )
}
