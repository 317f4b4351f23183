import { both, type Shape, shaped } from "#lib/shape.ts"
import type { KubeObject } from "#runtime/resource.ts"

// What every explanation keeps of an object. The shapes of each kind of explanation build on these.

export const metadata: Shape = {
  name: "value",
  namespace: "value",
  uid: "value",
  resourceVersion: "value",
  generation: "value",
  creationTimestamp: "value",
  deletionTimestamp: "value",
  ownerReferences: [{ uid: "value", controller: "value" }],
}

export const images: Shape = [{ name: "value", image: "value" }]

const containerState: Shape = {
  waiting: { reason: "value", message: "value" },
  running: { startedAt: "value" },
  // Not its message: that is the end of the container's log.
  terminated: { exitCode: "value", reason: "value", finishedAt: "value", containerID: "value" },
}
export const containerStatuses: Shape = [
  { name: "value", ready: "value", restartCount: "value", state: containerState, lastState: containerState },
]

export const cut =
  (shape: Shape) =>
  (object: KubeObject): KubeObject =>
    shaped(object, both(shape, { apiVersion: "value", kind: "value" })) as KubeObject
