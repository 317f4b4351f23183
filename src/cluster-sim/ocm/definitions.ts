import type { Json } from "../object.ts"

/**
 * The kinds of Open Cluster Management as far as a work agent and its hub need them: our own writing, with the defaults
 * of the original and none of its rules.
 */
const open = { type: "object", "x-kubernetes-preserve-unknown-fields": true }

const definition = (group: string, kind: string, plural: string, scope: string, spec: object = open): Json =>
  ({
    apiVersion: "apiextensions.k8s.io/v1",
    kind: "CustomResourceDefinition",
    metadata: { name: `${plural}.${group}` },
    spec: {
      ...{ group, scope, names: { kind, plural, singular: kind.toLowerCase(), listKind: `${kind}List` } },
      versions: [
        {
          ...{ name: "v1", served: true, storage: true, subresources: { status: {} } },
          schema: { openAPIV3Schema: { type: "object", properties: { spec, status: open } } },
        },
      ],
    },
  }) as Json

const text = { type: "string" }
const workSpec = {
  ...open,
  properties: {
    deleteOption: { ...open, properties: { propagationPolicy: { ...text, default: "Foreground" } } },
    manifestConfigs: {
      type: "array",
      items: {
        ...open,
        properties: {
          feedbackScrapeType: { ...text, default: "Poll" },
          updateStrategy: {
            ...open,
            properties: {
              type: { ...text, default: "Update" },
              serverSideApply: { ...open, properties: { fieldManager: { ...text, default: "work-agent" } } },
            },
          },
        },
      },
    },
  },
}

/** For a hub. */
export const hubDefinitions: readonly Json[] = [
  definition("work.open-cluster-management.io", "ManifestWork", "manifestworks", "Namespaced", workSpec),
  definition("cluster.open-cluster-management.io", "ManagedCluster", "managedclusters", "Cluster"),
]

/** For a cluster with an agent. */
export const agentDefinitions: readonly Json[] = [
  definition("work.open-cluster-management.io", "AppliedManifestWork", "appliedmanifestworks", "Cluster"),
]
