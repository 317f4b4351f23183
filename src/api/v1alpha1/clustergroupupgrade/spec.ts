import { z } from "zod"
import { countOrPercent, foreign, labelSelector, labels, listAtomic, listMap, listSet, rules } from "../../fields.ts"
import { clusterName, windowFields } from "../cluster-fields.ts"
import { namespaceName, objectName } from "../delivery-fields.ts"
import { group, version } from "../group.ts"
import { maxClusters, maxManifests, maxUpgrades } from "./bounds.ts"

/** Kinds that a hub delivers. A NodeImage belongs to the agents of its cluster, and the others to the hub itself. */
const deliveredKinds = [
  "ServiceImage",
  "AlternateImageSource",
  "ContainerRecreateRequest",
  "ImagePullJob",
  "ImageListPullJob",
  "Canary",
  "MetricTemplate",
  "AlertProvider",
] as const

const manifest = z.object({
  apiVersion: z
    .enum([`${group}/${version}`])
    .meta({ hint: `only kinds of ${group} are delivered: write apiVersion: ${group}/${version}` })
    .describe("Group and version: ours."),
  kind: z
    .enum(deliveredKinds)
    .meta({ hint: `write one of ${deliveredKinds.join(", ")}` })
    .describe("One of our kinds, except NodeImage and those of a hub."),
  metadata: z
    .object({
      name: objectName().describe("The name on the cluster."),
      namespace: namespaceName().describe("The namespace on the cluster, for kinds that have one.").optional(),
      labels: labels().meta({ maxProperties: 32 }).describe("Labels on the cluster.").optional(),
      annotations: z
        .record(z.string(), z.string().max(4096))
        .meta({ maxProperties: 32 })
        .describe("Annotations on the cluster.")
        .optional(),
    })
    .describe("How the object is called on every cluster."),
  spec: foreign().meta({ maxProperties: 64 }).describe("The spec, as that kind has it."),
})

const upgrade = z.object({
  name: z
    .string()
    .min(1)
    .max(63)
    .regex(/^[a-z0-9]([-a-z0-9]*[a-z0-9])?$/)
    .meta({ hint: "write a name of at most 63 lower-case letters, digits and '-'" })
    .describe("What the step is called in messages."),
  manifests: z
    .array(manifest)
    .min(1)
    .max(maxManifests)
    .meta({ ...listAtomic, hint: `write from 1 to ${maxManifests} objects of our kinds` })
    .describe("Objects that each cluster gets. They are judged by Ready and Stalled."),
  soakSeconds: z
    .int()
    .min(0)
    .max(2_592_000)
    .meta({ hint: "write seconds, from 0 to 2592000 (30 days)" })
    .describe("How long every object must have been ready before the cluster goes on.")
    .default(0),
})

/** What belongs to others: a run that changed these would take clusters out of the hands of their controllers. */
const owned = "(^|[.])(open-cluster-management[.]io|kubernetes[.]io|k8s[.]io|autoimagemanager[.]io)/"

const keys = (what: string) =>
  z
    .array(z.string().min(1).max(317))
    .max(32)
    .meta({ ...listSet, hint: "write at most 32 keys, each once" })
    .describe(what)
    .default([])

const clusterActions = {
  addClusterLabels: labels().meta({ maxProperties: 32 }).describe("Labels that clusters get.").optional(),
  removeClusterLabels: keys("Labels that clusters lose."),
  addClusterAnnotations: z
    .record(z.string(), z.string().max(1024))
    .meta({ maxProperties: 32 })
    .describe("Annotations that clusters get.")
    .optional(),
  removeClusterAnnotations: keys("Annotations that clusters lose."),
}

const leavesOthersAlone = rules(
  ...Object.keys(clusterActions).map(field => ({
    rule: `${field.startsWith("add") ? `!has(self.${field}) || ` : ""}self.${field}.all(key, !key.matches('${owned}'))`,
    message:
      "labels and annotations of Open Cluster Management, of Kubernetes and of aim itself are left alone: write others",
    fieldPath: `.${field}`,
  })),
)

const remediationStrategy = z.object({
  canaries: z
    .array(clusterName())
    .max(64)
    .meta({ ...listSet, hint: "write at most 64 clusters, each once" })
    .describe("Clusters that go first, each as a batch of its own. A canary that fails ends the run.")
    .default([]),
  maxConcurrency: countOrPercent({ minimum: 1, maximum: maxClusters }).describe(
    "How many clusters a batch has, as a number or a share of the clusters; a share rounds down, to at least 1.",
  ),
  timeout: z
    .int()
    .min(1)
    .max(525_600)
    .meta({ hint: "write minutes, from 1 to 525600 (a year)" })
    .describe("Minutes of work for the whole run. Hours in which nothing may be done do not count.")
    .default(240),
  failureBudget: countOrPercent({ minimum: 0, maximum: maxClusters })
    .describe(
      "More clusters that failed or timed out than this end the run; a percentage rounds up. Unset: no limit. For canaries it is always 0.",
    )
    .optional(),
  requireApproval: z
    .enum(["Never", "AfterCanaries", "EachBatch"])
    .describe("Before which batches the run waits for `aim approve`.")
    .default("Never"),
})

/** What a user writes. */
export const spec = z
  .object({
    enable: z.boolean().describe("false: clusters are planned and pre-cached, and not upgraded.").default(true),
    paused: z.boolean().describe("Nothing new begins.").default(false),
    clusters: z
      .array(clusterName())
      .max(maxClusters)
      .meta({ ...listSet, hint: `write at most ${maxClusters} clusters, each once` })
      .describe("Clusters by name; they go in this order.")
      .default([]),
    clusterLabelSelectors: z
      .array(labelSelector())
      .max(16)
      .meta({ ...listAtomic, hint: "write at most 16 selectors" })
      .describe("Clusters that one of these selects, after `clusters`, by name.")
      .default([]),
    placementRef: z
      .object({ name: objectName("write the name of a Placement in the same namespace").describe("Its name.") })
      .describe("A Placement of Open Cluster Management beside the run: its clusters come last, by group.")
      .optional(),
    upgrades: z
      .array(upgrade)
      .min(1)
      .max(maxUpgrades)
      .meta({ ...listMap("name"), hint: `write from 1 to ${maxUpgrades} upgrades` })
      .describe("What each cluster gets, in this order."),
    resolveDigest: z
      .enum(["Never", "AtStart"])
      .describe("AtStart: tags are resolved once on the hub, so that every cluster gets the same bits.")
      .default("Never"),
    remediationStrategy: remediationStrategy.describe("In which batches, how fast, and how much may fail."),
    batchTimeoutAction: z
      .enum(["Continue", "Abort"])
      .describe("What happens when the time of a batch is over. The time-out of a canary always ends the run.")
      .default("Continue"),
    onFailure: z
      .enum(["Halt", "Rollback"])
      .describe("What a failed run does: Halt stops it, Rollback undoes what it changed, the last batch first.")
      .default("Halt"),
    preCaching: z.boolean().describe("Bring the images to the nodes of each cluster first.").default(false),
    preCachingConfigRef: z
      .object({ name: objectName("write the name of a PreCachingConfig in the same namespace").describe("Its name.") })
      .describe("A PreCachingConfig beside the run.")
      .optional(),
    preCachingGate: z
      .enum(["Cluster", "Fleet", "Never"])
      .describe(
        "Cluster: each starts when its images are there. Fleet: none before pre-caching has ended on all. Never: none waits.",
      )
      .default("Cluster"),
    windows: z
      .object({
        ...windowFields,
        graceMinutes: z
          .int()
          .min(0)
          .max(1440)
          .meta({ hint: "write minutes, from 0 to 1440 (a day)" })
          .describe("How long after its end a cluster that was begun in a window may go on.")
          .default(30),
      })
      .describe("When something may begin.")
      .prefault({}),
    blockingCRs: z
      .array(
        z.object({
          name: objectName("write the name of a ClusterGroupUpgrade in the same namespace").describe("Its name."),
          completion: z
            .enum(["Full", "Partial"])
            .describe("Partial: it is enough that the other run has ended.")
            .default("Full"),
          onlyItsCompleted: z
            .boolean()
            .describe("Only clusters that the other run has completed are upgraded.")
            .default(false),
        }),
      )
      .max(16)
      .meta({ ...listMap("name"), hint: "write at most 16 other runs, each once" })
      .describe("Runs in the same namespace that must have succeeded before this one starts.")
      .default([]),
    actions: z
      .object({
        beforeEnable: z
          .object(clusterActions)
          .meta(leavesOthersAlone)
          .describe("What changes on each cluster at the start.")
          .prefault({}),
        afterCompletion: z
          .object({
            ...clusterActions,
            deleteObjects: z
              .boolean()
              .describe("The helper objects of the run go at its end. What was delivered stays.")
              .default(true),
          })
          .meta(leavesOthersAlone)
          .describe("What changes on each cluster when it is complete.")
          .prefault({}),
      })
      .describe("Labels and annotations of the clusters' objects on the hub.")
      .prefault({}),
  })
  .meta(
    rules(
      {
        rule: "self.clusters.size() > 0 || self.clusterLabelSelectors.size() > 0 || has(self.placementRef)",
        message: "no cluster is selected: write clusters, clusterLabelSelectors or placementRef",
        fieldPath: ".clusters",
      },
      {
        rule: "self.preCaching || !has(self.preCachingConfigRef)",
        message: "preCachingConfigRef has no effect without pre-caching: write preCaching: true, or leave it out",
        fieldPath: ".preCachingConfigRef",
      },
    ),
  )
