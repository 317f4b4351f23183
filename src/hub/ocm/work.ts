import { createHash } from "node:crypto"
import { fenceAnnotation, runAnnotation, spokeNames } from "#core/cluster-fleet/deliverable.ts"
import { kindOf, sentManifest } from "#core/cluster-fleet/delivered.ts"
import type { Delivery } from "#core/cluster-fleet/transport.ts"
import type { KubeObject, Resource } from "#runtime/resource.ts"
import { conditionRule, jsonPath } from "./rule.ts"

export const manifestWorks: Resource = {
  ...{ group: "work.open-cluster-management.io", version: "v1", plural: "manifestworks", kind: "ManifestWork" },
  namespaced: true,
}
export const managedClusters: Resource = {
  ...{ group: "cluster.open-cluster-management.io", version: "v1", plural: "managedclusters", kind: "ManagedCluster" },
  namespaced: false,
}

/** The name of the ManifestWork of a bundle, in the namespace of its cluster. Other works are none of ours. */
export const workName = (bundle: string) => `aim-${bundle}`
export const isOurs = (name: string) => name.startsWith("aim-")

export type WorkSpec = ReturnType<typeof workSpec>

/**
 * What OCM's agent is asked to do. Every field that the server would fill in is written, so that what is stored is what
 * was sent, and a change by another writer is seen by comparing.
 */
export function workSpec({ objects, run }: Delivery, hubId: string) {
  const identified = objects.map(each => ({ each, resourceIdentifier: identifierOf(each.manifest) }))
  const kept = identified
    .filter(({ each }) => each.lifetime === "Kept")
    .map(({ resourceIdentifier }) => resourceIdentifier)
  return {
    workload: { manifests: objects.map(each => sentManifest(each, run)) },
    deleteOption: deleteOption(kept, objects.length),
    executor: {
      subject: {
        type: "ServiceAccount",
        serviceAccount: { namespace: spokeNames.hubNamespace, name: spokeNames.executor },
      },
    },
    manifestConfigs: identified.map(({ each, resourceIdentifier }) => ({
      resourceIdentifier,
      updateStrategy: {
        type: "ServerSideApply",
        serverSideApply: { force: false, fieldManager: `work-agent-aim-${hubId}` },
      },
      feedbackScrapeType: "Watch",
      ...(Object.keys(each.fields ?? {}).length > 0 && {
        feedbackRules: [
          {
            type: "JSONPaths",
            jsonPaths: Object.entries(each.fields ?? {}).map(([name, path]) => ({ name, path: jsonPath(path) })),
          },
        ],
      }),
      conditionRules: [conditionRule(each, run)],
    })),
  }
}

type Identifier = ReturnType<typeof identifierOf>

export const identifierOf = (manifest: Delivery["objects"][number]["manifest"]) => {
  const { group, plural } = kindOf(manifest)
  const { name, namespace = "" } = manifest.metadata
  return { group, resource: plural, name, namespace }
}

function deleteOption(kept: readonly Identifier[], total: number) {
  if (kept.length === 0) return { propagationPolicy: "Foreground" }
  if (kept.length === total) return { propagationPolicy: "Orphan" }
  return { propagationPolicy: "SelectivelyOrphan", selectivelyOrphans: { orphaningRules: kept } }
}

export const workObject = (cluster: string, delivery: Delivery, spec: WorkSpec): KubeObject & { spec: WorkSpec } => ({
  apiVersion: "work.open-cluster-management.io/v1",
  kind: "ManifestWork",
  metadata: { name: workName(delivery.bundle), namespace: cluster, annotations: annotationsOf(delivery) },
  spec,
})

export const annotationsOf = ({ run, fence }: Delivery) => ({ [runAnnotation]: run, [fenceAnnotation]: fence })

/** The same for the same content, whatever the order of its fields. */
export const hashOf = (spec: unknown) =>
  createHash("sha256")
    .update(JSON.stringify(ordered(spec)))
    .digest("hex")

function ordered(value: unknown): unknown {
  if (typeof value !== "object" || value === null) return value
  if (Array.isArray(value)) return value.map(ordered)
  const entries = Object.entries(value).filter(([, each]) => each !== undefined)
  return Object.fromEntries(
    entries.map(([key, each]) => [key, ordered(each)] as const).sort(([a], [b]) => (a < b ? -1 : 1)),
  )
}
