import type { Canary } from "#api/v1alpha1/canary/index.ts"
import { checksumOf } from "#core/canary/checksum.ts"
import { isOfComponent } from "#core/canary/provider.ts"
import { workloadKind } from "#core/workloads/kinds.ts"
import { endOf, progressOf, type SeenCanary } from "#operations/canary/progress.ts"
import type { Client } from "#runtime/client/client.ts"
import { isFailure } from "#runtime/client/errors.ts"
import { type KubeObject, resourceOf } from "#runtime/resource.ts"
import type { Watched } from "../commands/wait.ts"
import { canaries } from "../kinds.ts"
import { canaryLine } from "../render/canary.ts"

const deployments = resourceOf(workloadKind("Deployment")!)

/** Waits until the last change of the target is promoted, or was not. */
export const runs = (namespace: string): Watched => ({
  resource: canaries,
  namespace,
  read(object) {
    const progress = progressOf(object as unknown as SeenCanary)
    return { line: canaryLine(progress), is: endOf(progress) }
  },
  whyNotYet: (object, client) => whyNotYet(object as unknown as Canary, client),
})

type Deployment = KubeObject & {
  spec?: { replicas?: number; template?: Parameters<typeof checksumOf>[0] }
  status?: { observedGeneration?: number; updatedReplicas?: number }
}

/** A change of the workload does not change the Canary: until its controller has looked, its status is about the last run. */
async function whyNotYet({ spec, metadata, status }: Canary, client: Client): Promise<string | undefined> {
  const { kind, name } = spec.targetRef
  // A revision of an OAM component is compared by its name too.
  if (kind !== "Deployment" || isOfComponent({ spec })) return undefined
  const deployment = await client.get<Deployment>(deployments, { name, namespace: metadata.namespace }).catch(error => {
    if (isFailure(error, "NotFound", "Forbidden")) return undefined
    throw error
  })
  if (!deployment?.spec?.template) return undefined
  const { replicas = 1, template } = deployment.spec
  const { observedGeneration = 0, updatedReplicas = 0 } = deployment.status ?? {}
  const isDone = observedGeneration >= (deployment.metadata.generation ?? 0) && updatedReplicas >= replicas
  const isSeen = status?.phase === "Failed" ? isDone || status.lastAppliedSpec === checksumOf(template) : isDone
  return isSeen ? undefined : `the last change of Deployment ${name} is not seen yet`
}
