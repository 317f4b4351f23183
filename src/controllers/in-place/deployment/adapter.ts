import { holdKinds } from "#core/in-place/hold.ts"
import { heldMark, inPlaceAnnotation } from "#core/in-place/names.ts"
import { hashLabel, labelsOf, type PodTemplate, withoutHash } from "#core/in-place/template.ts"
import type { Client } from "#runtime/client/client.ts"
import { type Outcome, orThere, outcomeOf } from "#runtime/client/outcome.ts"
import { apiVersionOf, controlledBy } from "#runtime/resource.ts"
import type { Adapter } from "../kind.ts"
import { deployments, replicaSets } from "../resources.ts"
import { type Deployment, type Revision, readDeployment, readRevision, revisionKey } from "./facts.ts"
import { type DeploymentAction, nativeOf } from "./native.ts"

/** Held by its pause. The template of its one ReplicaSet is flipped, and its note is the fence (decision 66). */
export const deployment: Adapter<Deployment, Revision> = {
  resource: deployments,
  read: readDeployment,
  revisions: replicaSets,
  readRevision,
  podOwners: (_, revisions) => revisions.map(({ uid }) => uid),
  workloadOf: (podOwner, revisionOf) => revisionOf(podOwner)?.owner.name,
  native: nativeOf,
  releasedSpec: ({ hold }) => holdKinds.Deployment.released(hold, {}),
  write,
}

function write(client: Client, workload: Deployment, action: DeploymentAction): Promise<Outcome<unknown>> {
  switch (action.do) {
    case "keepHistory":
      return outcomeOf(orThere(client.create(replicaSets, historyOf(workload, action) as never)))
    case "deleteDouble": {
      const { uid, resourceVersion } = action.revision
      return outcomeOf(client.delete(replicaSets, action.revision, { uid, resourceVersion }))
    }
    case "flip":
      return outcomeOf(client.patch(replicaSets, action.revision, { type: "json", body: flipOf(action) }))
  }
}

/** The template before, as a ReplicaSet without pods: for `kubectl rollout history` and `undo`. */
function historyOf(workload: Deployment, { name, hash, of }: Extract<DeploymentAction, { do: "keepHistory" }>) {
  const { namespace, selector } = workload
  const template = withHash(of.template, hash)
  return {
    apiVersion: apiVersionOf(replicaSets),
    kind: replicaSets.kind,
    metadata: {
      name,
      namespace,
      labels: labelsOf(template),
      annotations: { ...annotationsBefore(of), [revisionKey]: of.number },
      ownerReferences: [controlledBy(deployments, workload)],
    },
    spec: {
      replicas: 0,
      selector: { ...selector, matchLabels: { ...selector.matchLabels, [hashLabel]: hash } },
      template,
    },
  }
}

/** `kubectl rollout undo` replaces the Deployment's own annotations by these. */
const annotationsBefore = ({ annotations }: Revision) =>
  Object.fromEntries(Object.entries(annotations).filter(([key]) => !ofItsOwn.has(key)))

/** What the hold and the Deployment controller write is about one ReplicaSet. */
const ofItsOwn = new Set<string>([
  heldMark,
  inPlaceAnnotation,
  "deployment.kubernetes.io/desired-replicas",
  "deployment.kubernetes.io/max-replicas",
  "deployment.kubernetes.io/revision-history",
])

const withHash = (template: PodTemplate, hash: unknown): PodTemplate => {
  const plain = withoutHash(template)
  return { ...plain, metadata: { ...plain.metadata, labels: { ...labelsOf(plain), [hashLabel]: hash } } }
}

/** Conditional on the ReplicaSet that was seen: a `replace` of its version makes it so. */
const flipOf = ({ revision, template }: { revision: Revision; template: PodTemplate }) => [
  { op: "replace", path: "/metadata/resourceVersion", value: revision.resourceVersion },
  { op: "replace", path: "/spec/template", value: withHash(template, labelsOf(revision.template)[hashLabel]) },
]
