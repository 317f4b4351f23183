import type { Case } from "./serviceimage.ts"

/** Manifests of the kinds of a hub, and what must be said of them. */

type Fields = Record<string, unknown>

const apiVersion = "autoimagemanager.io/v1alpha1"
const serviceImage = {
  apiVersion,
  kind: "ServiceImage",
  metadata: { name: "dicom" },
  spec: {
    target: { apiVersion: "services.example.com/v1alpha1", kind: "Dicom" },
    defaultImage: "registry.example.com/dicom-service:v2",
  },
}
const upgrade = { name: "dicom", manifests: [serviceImage] }
const upgradeWith = (fields: Fields) => ({ upgrades: [{ ...upgrade, ...fields }] })

const run = (spec: Fields) => ({
  apiVersion,
  kind: "ClusterGroupUpgrade",
  metadata: { name: "north", namespace: "fleet" },
  spec: { clusters: ["edge-0001"], upgrades: [upgrade], remediationStrategy: { maxConcurrency: "10%" }, ...spec },
})
const strategy = (fields: Fields) => run({ remediationStrategy: { maxConcurrency: 1, ...fields } })
const window = (fields: Fields) =>
  run({ windows: { upgrade: [{ schedule: "0 1 * * 6", durationMinutes: 240, timeZone: "Europe/Berlin", ...fields }] } })
const actions = (fields: Fields) => run({ actions: { beforeEnable: fields } })
const alone = "labels and annotations of Open Cluster Management"

export const clusterGroupUpgradeCases: Record<string, Case> = {
  "the smallest manifest": { manifest: run({}) },
  "every field": {
    manifest: run({
      enable: false,
      paused: true,
      clusterLabelSelectors: [{ matchLabels: { region: "north" } }],
      placementRef: { name: "north" },
      upgrades: [{ ...upgrade, soakSeconds: 600 }],
      resolveDigest: "AtStart",
      remediationStrategy: {
        canaries: ["edge-0001"],
        maxConcurrency: "10%",
        timeout: 240,
        failureBudget: "2%",
        requireApproval: "AfterCanaries",
      },
      batchTimeoutAction: "Abort",
      onFailure: "Rollback",
      preCaching: true,
      preCachingConfigRef: { name: "edge" },
      preCachingGate: "Fleet",
      windows: {
        preCaching: [{ schedule: "@daily", durationMinutes: 60 }],
        upgrade: [{ schedule: "0 1 * * 6", durationMinutes: 240, timeZone: "Europe/Berlin" }],
        graceMinutes: 10,
      },
      blockingCRs: [{ name: "core", completion: "Partial", onlyItsCompleted: true }],
      actions: {
        beforeEnable: { addClusterLabels: { upgrading: "true" }, removeClusterLabels: ["done"] },
        afterCompletion: {
          deleteObjects: false,
          addClusterAnnotations: { "example.com/by": "aim" },
          removeClusterAnnotations: ["example.com/old"],
        },
      },
    }),
  },
  "no cluster": {
    manifest: run({ clusters: [] }),
    refused: { path: "spec.clusters", words: "no cluster is selected" },
  },
  "a cluster twice": {
    manifest: run({ clusters: ["a", "a"] }),
    refused: { path: "spec.clusters[1]", words: "repeats", serverWords: "Duplicate value" },
  },
  "a cluster whose name no namespace can have": {
    manifest: run({ clusters: ["Edge.1"] }),
    refused: { path: "spec.clusters[0]", words: "write the name of a cluster", serverWords: "should match" },
  },
  "no concurrency": {
    manifest: strategy({ maxConcurrency: 0 }),
    refused: {
      path: "spec.remediationStrategy.maxConcurrency",
      words: "write a number from 1",
      serverWords: "should be greater than or equal to 1",
    },
  },
  "a concurrency of 0%": {
    manifest: strategy({ maxConcurrency: "0%" }),
    refused: {
      path: "spec.remediationStrategy.maxConcurrency",
      words: 'a percentage from "1%"',
      serverWords: "should match",
    },
  },
  "a budget of none": { manifest: strategy({ failureBudget: 0 }) },
  "a foreign kind": {
    manifest: run(upgradeWith({ manifests: [{ ...serviceImage, apiVersion: "v1", kind: "ServiceImage" }] })),
    refused: {
      path: "spec.upgrades[0].manifests[0].apiVersion",
      words: "only kinds of autoimagemanager.io",
      serverWords: "Unsupported value",
    },
  },
  "a NodeImage": {
    manifest: run(upgradeWith({ manifests: [{ ...serviceImage, kind: "NodeImage" }] })),
    refused: {
      path: "spec.upgrades[0].manifests[0].kind",
      words: "write one of ServiceImage",
      serverWords: "Unsupported value",
    },
  },
  "no upgrades": {
    manifest: run({ upgrades: [] }),
    refused: { path: "spec.upgrades", words: "from 1 to 16 upgrades", serverWords: "at least 1 items" },
  },
  "an upgrade twice": {
    manifest: run({ upgrades: [upgrade, upgrade] }),
    refused: { path: "spec.upgrades[1]", words: "repeats", serverWords: "Duplicate value" },
  },
  "a schedule of four fields": {
    manifest: window({ schedule: "0 1 * *" }),
    refused: { path: "spec.windows.upgrade[0].schedule", words: "five fields as in cron" },
  },
  "a window of no time": {
    manifest: window({ durationMinutes: 0 }),
    refused: {
      path: "spec.windows.upgrade[0].durationMinutes",
      words: "from 1 to 10080",
      serverWords: "should be greater than or equal to 1",
    },
  },
  "a configuration without pre-caching": {
    manifest: run({ preCachingConfigRef: { name: "edge" } }),
    refused: { path: "spec.preCachingConfigRef", words: "write preCaching: true" },
  },
  "a label of Open Cluster Management": {
    manifest: actions({ addClusterLabels: { "cluster.open-cluster-management.io/clusterset": "mine" } }),
    refused: { path: "spec.actions.beforeEnable.addClusterLabels", words: alone },
  },
  "a label of Kubernetes": {
    manifest: actions({ removeClusterLabels: ["kubernetes.io/metadata.name"] }),
    refused: { path: "spec.actions.beforeEnable.removeClusterLabels", words: alone },
  },
  "an annotation of ours": {
    manifest: actions({ addClusterAnnotations: { "autoimagemanager.io/run": "x" } }),
    refused: { path: "spec.actions.beforeEnable.addClusterAnnotations", words: alone },
  },
  "a label that only ends alike": { manifest: actions({ addClusterLabels: { "notkubernetes.io/a": "b" } }) },
}

const config = (spec: Fields) => ({
  apiVersion,
  kind: "PreCachingConfig",
  metadata: { name: "edge", namespace: "fleet" },
  spec,
})

export const preCachingConfigCases: Record<string, Case> = {
  "the smallest manifest": { manifest: config({}) },
  "every field": {
    manifest: config({
      overrides: { images: ["nginx:1"] },
      additionalImages: ["busybox:1"],
      excludePrecachePatterns: ["^registry[.]example[.]com/debug"],
      spaceRequired: "35 GiB",
      nodeSelector: { pool: "edge" },
      parallelism: 2,
      timeoutMinutes: 60,
      maxAttempts: 1,
    }),
  },
  "a size without a space": { manifest: config({ spaceRequired: "30GB" }) },
  "a size without a unit": {
    manifest: config({ spaceRequired: "35" }),
    refused: { path: "spec.spaceRequired", words: "such as 35 GiB" },
  },
  "an image that is none": {
    manifest: config({ additionalImages: ["A B"] }),
    refused: { path: "spec.additionalImages[0]", words: "write an image as" },
  },
  "a parallelism of none": {
    manifest: config({ parallelism: 0 }),
    refused: {
      path: "spec.parallelism",
      words: "write a number from 1",
      serverWords: "should be greater than or equal to 1",
    },
  },
}

const spoke = (spec: Fields) => ({ apiVersion, kind: "SpokeCluster", metadata: { name: "edge-0001" }, spec })
const direct = { secretRef: { name: "edge-0001-kubeconfig" } }

export const spokeClusterCases: Record<string, Case> = {
  "a cluster that is reached directly": { manifest: spoke({ direct }) },
  "a cluster of Open Cluster Management": { manifest: spoke({ transport: "OCM" }) },
  "every field": {
    manifest: spoke({
      direct,
      windows: { upgrade: [{ schedule: "0 2 * * *", durationMinutes: 60 }] },
      imageMapping: [{ from: "registry.example.com/", to: "registry.north.example.com/" }],
    }),
  },
  "a direct cluster without a kubeconfig": {
    manifest: spoke({}),
    refused: { path: "spec.direct", words: "needs a kubeconfig" },
  },
  "a mapping of half a name": {
    manifest: spoke({ direct, imageMapping: [{ from: "registry.example.co", to: "a.example.com/" }] }),
    refused: { path: "spec.imageMapping[0].from", words: "with a slash at the end", serverWords: "should match" },
  },
  "a beginning that is mapped twice": {
    manifest: spoke({
      direct,
      imageMapping: [
        { from: "a.example.com/", to: "b.example.com/" },
        { from: "a.example.com/", to: "c.example.com/" },
      ],
    }),
    refused: { path: "spec.imageMapping[1]", words: "repeats", serverWords: "Duplicate value" },
  },
}

export const clusterUpgradeCases: Record<string, Case> = {
  "what the controller writes": {
    manifest: {
      apiVersion,
      kind: "ClusterUpgrade",
      metadata: { name: "north-edge-0001", namespace: "fleet" },
      spec: { run: "north", operation: "g1", cluster: "edge-0001", batch: 1, isCanary: true },
    },
  },
}
