import { gitOpsMarks } from "#controllers/alternateimagesource/facts.ts"
import { decisionAnnotation } from "#core/image/record.ts"
import { heldMark, inPlaceAnnotation, strategyAnnotation } from "#core/in-place/names.ts"
import { mirrorMark, skipMark } from "#core/pods/left-alone.ts"
import { both, type Shape } from "#lib/shape.ts"
import { containerStatuses, images, metadata } from "../shapes.ts"

/**
 * Everything the AlternateImageSource controller reads from a cluster, kind by kind, except Secrets. A dump holds only
 * this: a field that the controller reads in addition must be added here.
 */

const owned = both(metadata, {
  labels: "all",
  ownerReferences: [{ apiVersion: "value", kind: "value", name: "value" }],
})

export const neededOfSource: Shape = { metadata, spec: "all", status: "all" }

const podSpec: Shape = { containers: images, initContainers: images }
const templated = (spec: Shape): Shape => ({
  template: { spec },
  jobTemplate: { spec: { template: { spec } } },
})

export const neededOfWorkload: Shape = {
  metadata: both(owned, {
    annotations: Object.fromEntries(
      [decisionAnnotation, heldMark, inPlaceAnnotation, strategyAnnotation, ...gitOpsMarks.map(mark => `${mark}*`)].map(
        keep,
      ),
    ),
    managedFields: [{ manager: "value" }],
  }),
  spec: both({ selector: { matchLabels: "all" }, paused: "value", updateStrategy: "all" }, templated(podSpec)),
  status: { observedGeneration: "value", updateRevision: "value" },
}

const pullingContainers: Shape = both(images, [{ imagePullPolicy: "value" }])
const pulledContainers: Shape = both(containerStatuses, [{ containerID: "value", imageID: "value" }])

export const neededOfPod: Shape = {
  metadata: both(owned, {
    annotations: Object.fromEntries([decisionAnnotation, inPlaceAnnotation, skipMark, mirrorMark].map(keep)),
  }),
  spec: { nodeName: "value", containers: pullingContainers, initContainers: pullingContainers },
  status: { phase: "value", containerStatuses: pulledContainers, initContainerStatuses: pulledContainers },
}

const credentials: Shape = { imagePullSecrets: [{ name: "value" }], serviceAccountName: "value" }

/** The names of a workload's own credentials. Not in a dump: only `aim verify` asks registries. */
export const neededToAsk: Shape = { spec: both(credentials, templated(credentials)) }

function keep(name: string): [string, "value"] {
  return [name, "value"]
}
