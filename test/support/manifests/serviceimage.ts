/**
 * Manifests of ServiceImages and what must be said of them. Our validator judges the table in a unit test, a real
 * kube-apiserver in test/e2e/crd.test.ts: both must agree with it, and so with each other.
 */

export type Case = {
  manifest: unknown
  /** Given for an update: what was stored before. */
  old?: unknown
  /** Without it the manifest is good. */
  refused?: {
    path: string
    /** What our message must contain. */
    words: string
    /** What the server's must contain, where it is not the message of a CEL rule and so differs from ours. */
    serverWords?: string
    /** Where the server names the place differently. */
    serverPath?: string
  }
  /** A field both drop, and what our warning must contain. The server warns too, unless it is silent. */
  warned?: { path: string; words: string; serverIsSilent?: boolean }
}

type Fields = Record<string, unknown>

const target = { apiVersion: "services.example.com/v1alpha1", kind: "Dicom" }
const workload = { apiVersion: "apps/v1", kind: "Deployment", image: { container: "app" } }
const image = "registry.example.com/dicom-service:v2"
const hex = "0123456789abcdef".repeat(4)

/** A calm ServiceImage, with the one difference that matters. */
const serviceImage = (spec: Fields, metadata: Fields = {}) => ({
  apiVersion: "autoimagemanager.io/v1alpha1",
  kind: "ServiceImage",
  metadata: { name: "dicom", ...metadata },
  spec: { target, defaultImage: image, ...spec },
})
const withTarget = (fields: Fields) => serviceImage({ target: { ...target, ...fields } })
const withTier = (fields: Fields) => serviceImage({ tiers: [{ upgradeTier: "early", ...fields }] })
const withImage = (defaultImage: unknown) => serviceImage({ defaultImage })

const badImage = { path: "spec.defaultImage", words: "write an image as" }
const tooFew = "should be greater than or equal to"
const tooMany = "should be less than or equal to"

const metric = { name: "errors", templateRef: { name: "error-rate" }, thresholdRange: { max: 5 } }
const judged = (analysis: Fields, more: Fields = { analysisNamespace: "shop" }) =>
  serviceImage({
    tiers: [{ upgradeTier: "early", analysis: { interval: "1m", threshold: 2, metrics: [metric], ...analysis } }],
    ...more,
  })

export const cases: Record<string, Case> = {
  // Good ones.
  "a tier that is judged": {
    manifest: judged({ webhooks: [{ name: "gate", url: "https://gate.example.com/", secretRef: { name: "gate" } }] }),
  },
  "an analysis without a namespace": {
    manifest: judged({}, {}),
    refused: { path: "spec.analysisNamespace", words: "write analysisNamespace" },
  },
  "an analysis that asks nothing": {
    manifest: judged({ metrics: [] }),
    refused: { path: "spec.tiers[0].analysis.metrics", words: "write metrics, webhooks or both" },
  },
  "a metric without a template": {
    manifest: judged({ metrics: [{ name: "errors", thresholdRange: { max: 5 } }] }),
    refused: {
      path: "spec.tiers[0].analysis.metrics[0].templateRef",
      words: "write templateRef: {name: METRICTEMPLATE}",
      serverWords: "Required value",
    },
  },
  "a range in which no value is": {
    manifest: judged({ metrics: [{ ...metric, thresholdRange: { min: 5, max: 1 } }] }),
    refused: { path: "spec.tiers[0].analysis.metrics[0].thresholdRange", words: "a min that is not above max" },
  },
  "a range in which every value is": {
    manifest: judged({ metrics: [{ ...metric, thresholdRange: {} }] }),
    refused: { path: "spec.tiers[0].analysis.metrics[0].thresholdRange", words: "finds nothing bad" },
  },
  "an analysis that no failed check halts": {
    manifest: judged({ threshold: 0 }),
    refused: {
      path: "spec.tiers[0].analysis.threshold",
      words: "at least 1",
      serverWords: tooFew,
    },
  },
  "more tiers with an analysis than the status has room for": {
    manifest: serviceImage({
      analysisNamespace: "shop",
      tiers: Array.from({ length: 17 }, (_, index) => ({
        upgradeTier: `t${index}`,
        analysis: { interval: "1m", threshold: 1, metrics: [metric] },
      })),
    }),
    refused: { path: "spec.tiers", words: "at most 16 tiers can have an analysis" },
  },
  "the smallest manifest": { manifest: serviceImage({}) },
  "the original document's example, with a target": {
    manifest: {
      apiVersion: "autoimagemanager.io/v1alpha1",
      kind: "ServiceImage",
      metadata: { name: "dicom-serviceimage-prod", labels: { service: "dicom" } },
      spec: {
        target,
        tiers: [
          { upgradeTier: "", image: "registry.example.com/dicom-service:v2", priority: 0 },
          { upgradeTier: "earlyAccess", image: "registry.example.com/dicom-service:v3", priority: 1 },
        ],
      },
    },
  },
  "every field": {
    manifest: serviceImage({
      target: {
        ...target,
        selector: { matchLabels: { service: "dicom", "example.com/team": "" } },
        namespaceSelector: {
          matchExpressions: [
            { key: "env", operator: "In", values: ["prod"] },
            { key: "legacy", operator: "DoesNotExist" },
          ],
        },
        image: { paths: ["spec.image", "spec.sidecar.image"] },
        health: "object.status.phase == 'Running'",
      },
      tiers: [
        { upgradeTier: "", priority: -5 },
        {
          upgradeTier: "earlyAccess",
          image: `registry.example.com:5000/dicom:v3@sha256:${hex}`,
          priority: 2147483647,
          steps: [{ percent: 1, soakSeconds: 3600 }, { percent: 25 }, { percent: 100 }],
          maxConcurrent: "10%",
          progressDeadlineSeconds: 60,
          failureBudget: "2%",
          requireApproval: true,
        },
      ],
      paused: true,
      pace: { podsPerSecond: 0 },
      onFailure: "Rollback",
      resolveDigest: "AtStart",
      preCache: "BeforeTier",
      preCacheTimeoutSeconds: 60,
      preCacheMissing: "Proceed",
      serialize: "Enforce",
    }),
  },
  "a workload with its container": {
    manifest: serviceImage({ target: workload, tiers: [{ upgradeTier: "", updateStrategy: "InPlaceIfPossible" }] }),
  },
  "a custom kind that is updated in place if that is possible": {
    manifest: withTier({ updateStrategy: "InPlaceIfPossible" }),
  },
  "an empty selector selects everything": { manifest: withTarget({ selector: {}, namespaceSelector: {} }) },
  "a tier without a name is the tier for everything else": { manifest: serviceImage({ tiers: [{ image }] }) },
  "a tier without an image takes the default": { manifest: withTier({}) },
  "tiers with images need no default": {
    manifest: serviceImage({ defaultImage: "", tiers: [{ upgradeTier: "a", image }] }),
  },
  "numbers where a percentage may stand": { manifest: withTier({ maxConcurrent: 1, failureBudget: 0 }) },
  "the widest percentages": { manifest: withTier({ maxConcurrent: "100%", failureBudget: "0%" }) },
  "no limit on the pace": { manifest: serviceImage({ pace: { podsPerSecond: 0 } }) },
  "an empty pace has its default": { manifest: serviceImage({ pace: {} }) },
  "null is as if it were absent": { manifest: serviceImage({ pace: null, onFailure: null, tiers: null }) },
  "null for a field without default is dropped": { manifest: withTarget({ selector: null }) },
  "no steps at all": { manifest: withTier({ steps: [] }) },
  "64 tiers": {
    manifest: serviceImage({ tiers: Array.from({ length: 64 }, (_, i) => ({ upgradeTier: i ? `tier-${i}` : "" })) }),
  },
  "a tier's name of 63 characters": { manifest: serviceImage({ tiers: [{ upgradeTier: "t".repeat(63) }] }) },
  "an image on an IPv6 host": { manifest: withImage("[::1]:5000/app:v1") },
  "an image on a host in upper case": { manifest: withImage("Registry.Example.COM/app:V1") },
  "an image of Docker Hub": { manifest: withImage("nginx") },
  "lengths count characters, not halves of them": { manifest: withTarget({ health: "😀".repeat(2048) }) },
  "the version of the target changes": {
    old: serviceImage({}),
    manifest: withTarget({ apiVersion: "services.example.com/v1" }),
  },
  "everything else may change": {
    old: serviceImage({ tiers: [{ upgradeTier: "a" }] }),
    manifest: serviceImage({ target: { ...target, selector: { matchLabels: { a: "b" } } }, paused: true, tiers: [] }),
  },

  // Unknown fields.
  "a misspelt field is dropped with a warning": {
    manifest: serviceImage({ puased: true }),
    warned: { path: "spec.puased", words: "did you mean paused?" },
  },
  "a misspelt field of a tier is dropped with a warning": {
    manifest: withTier({ maxConcurent: 3 }),
    warned: { path: "spec.tiers[0].maxConcurent", words: "did you mean maxConcurrent?" },
  },
  "a field from elsewhere is dropped with a warning": {
    manifest: withTarget({ namespace: "prod" }),
    warned: { path: "spec.target.namespace", words: "is not a field" },
  },

  "a field named like something every object inherits is dropped with a warning": {
    manifest: serviceImage({ constructor: {} }),
    warned: { path: "spec.constructor", words: "is not a field" },
  },

  // Target.
  "no target": {
    manifest: serviceImage({ target: undefined }),
    refused: {
      path: "spec.target",
      words: "write which objects are stamped, such as target: {",
      serverWords: "Required value",
    },
  },
  "no spec": {
    manifest: { ...serviceImage({}), spec: undefined },
    refused: { path: "spec", words: "is missing", serverWords: "Required value" },
  },
  "a target without kind": {
    manifest: withTarget({ kind: undefined }),
    refused: { path: "spec.target.kind", words: "such as Dicom or Deployment", serverWords: "Required value" },
  },
  "a target without group": {
    manifest: withTarget({ apiVersion: "v1" }),
    refused: { path: "spec.target.apiVersion", words: "write GROUP/VERSION" },
  },
  "a target in lower case": {
    manifest: withTarget({ kind: "dicom" }),
    refused: { path: "spec.target.kind", words: "as in a manifest" },
  },
  "a kind of apps that has no image to stamp": {
    manifest: withTarget({ apiVersion: "apps/v1", kind: "ReplicaSet", image: { container: "app" } }),
    refused: { path: "spec.target", words: "only Deployment, StatefulSet and DaemonSet" },
  },
  "a kind of our own": {
    manifest: withTarget({ apiVersion: "autoimagemanager.io/v1alpha1", kind: "ServiceImage" }),
    refused: { path: "spec.target", words: "objects of autoimagemanager.io cannot be stamped: write a custom kind" },
  },
  "a CronJob": {
    manifest: withTarget({ apiVersion: "batch/v1", kind: "CronJob" }),
    refused: { path: "spec.target", words: "only Deployment, StatefulSet and DaemonSet of apps/v1 can be stamped" },
  },
  "a ClusterRoleBinding": {
    manifest: withTarget({ apiVersion: "rbac.authorization.k8s.io/v1", kind: "ClusterRoleBinding" }),
    refused: { path: "spec.target", words: "only Deployment, StatefulSet and DaemonSet of apps/v1 can be stamped" },
  },
  "a CustomResourceDefinition": {
    manifest: withTarget({ apiVersion: "apiextensions.k8s.io/v1", kind: "CustomResourceDefinition" }),
    refused: { path: "spec.target", words: "only Deployment, StatefulSet and DaemonSet of apps/v1 can be stamped" },
  },
  "a custom kind of a group that ends like Kubernetes' own": {
    manifest: withTarget({ apiVersion: "gateway.networking.k8s.io/v1", kind: "Gateway" }),
  },
  "a workload without container": {
    manifest: withTarget({ apiVersion: "apps/v1", kind: "Deployment" }),
    refused: { path: "spec.target", words: "write image: {container: NAME}" },
  },
  "a custom kind with container": {
    manifest: withTarget({ image: { container: "app" } }),
    refused: { path: "spec.target", words: "write image: {paths: [spec.image]}" },
  },
  "both paths and container": {
    manifest: withTarget({ image: { paths: ["spec.image"], container: "app" } }),
    refused: { path: "spec.target.image", words: "write either paths" },
  },
  "neither paths nor container": {
    manifest: withTarget({ image: {} }),
    refused: { path: "spec.target.image", words: "write either paths" },
  },
  "no path at all": {
    manifest: withTarget({ image: { paths: [] } }),
    refused: { path: "spec.target.image.paths", words: "at least one path", serverWords: "at least 1 items" },
  },
  "a path outside spec": {
    manifest: withTarget({ image: { paths: ["metadata.labels.image"] } }),
    refused: { path: "spec.target.image.paths[0]", words: "field names below spec" },
  },
  ...Object.fromEntries(
    ["spec.__proto__.x", "spec.a.constructor", "spec.prototype"].map(path => [
      `the path ${path}`,
      {
        manifest: withTarget({ image: { paths: [path] } }),
        refused: {
          path: "spec.target.image.paths[0]",
          words: "__proto__, constructor, prototype cannot be part of a path",
        },
      },
    ]),
  ),
  "a path with a name that only begins like one that is refused": {
    manifest: withTarget({ image: { paths: ["spec.prototypes.image", "spec.constructorImage"] } }),
  },
  "four loops inside one another": {
    manifest: withTarget({ health: "[1,2].all(a, [1,2].all(b, [1,2].exists (c, [1,2].map(d, d) == [a, b])))" }),
    refused: { path: "spec.target.health", words: "at most three loops" },
  },
  "three loops inside one another, and others beside them": {
    manifest: withTarget({
      health:
        "object.a.all(x, has(x.b) && x.b.all(y, y.c.exists(z, z > 0))) && object.d.all(x, x > 0) && object.e.all(x, x > 0)",
    }),
  },
  "the same path twice": {
    manifest: withTarget({ image: { paths: ["spec.image", "spec.image"] } }),
    refused: {
      path: "spec.target.image.paths[1]",
      words: "repeats spec.target.image.paths[0]",
      serverWords: "Duplicate value",
    },
  },
  "a health expression of a novel's length": {
    manifest: withTarget({ health: "a".repeat(2049) }),
    refused: { path: "spec.target.health", words: "at most 2048", serverWords: "may not be more than 2048" },
  },
  "a selector that selects by nothing": {
    manifest: withTarget({ selector: { matchExpressions: [{ key: "a", operator: "In" }] } }),
    refused: { path: "spec.target.selector.matchExpressions[0]", words: "In and NotIn need values" },
  },
  "an unknown operator": {
    manifest: withTarget({ selector: { matchExpressions: [{ key: "a", operator: "in", values: ["b"] }] } }),
    refused: {
      path: "spec.target.selector.matchExpressions[0].operator",
      words: "did you mean In?",
      serverWords: "Unsupported value",
    },
  },
  "a label key with a space": {
    manifest: withTarget({ selector: { matchLabels: { "a b": "c" } } }),
    refused: { path: "spec.target.selector.matchLabels", words: "a label key is" },
  },
  "a label value with a space": {
    manifest: withTarget({ selector: { matchLabels: { a: "b c" } } }),
    refused: {
      path: "spec.target.selector.matchLabels[a]",
      words: "at most 63 letters",
      serverWords: "should match",
      serverPath: "spec.target.selector.matchLabels.a",
    },
  },
  "another kind": {
    old: serviceImage({}),
    manifest: withTarget({ kind: "Fhir" }),
    refused: { path: "spec.target", words: "kind and group cannot change" },
  },
  "another group": {
    old: serviceImage({}),
    manifest: withTarget({ apiVersion: "other.example.com/v1alpha1" }),
    refused: { path: "spec.target", words: "kind and group cannot change" },
  },

  // Images.
  "no image anywhere": {
    manifest: withImage(""),
    refused: { path: "spec.defaultImage", words: "without tiers, defaultImage" },
  },
  "no default image": {
    manifest: withImage(undefined),
    refused: { path: "spec.defaultImage", words: "without tiers, defaultImage" },
  },
  "one tier without an image": {
    manifest: serviceImage({ defaultImage: "", tiers: [{ upgradeTier: "a", image }, { upgradeTier: "b" }] }),
    refused: { path: "spec.tiers", words: "a tier has no image" },
  },
  "an image in upper case": { manifest: withImage("registry.example.com/Dicom:v2"), refused: badImage },
  "an image with a space": { manifest: withImage("dicom :v2"), refused: badImage },
  "an image with a line break": { manifest: withImage("dicom:v2\n"), refused: badImage },
  "an image with a scheme": { manifest: withImage("https://registry.example.com/dicom"), refused: badImage },
  "an image with an empty tag": { manifest: withImage("dicom:"), refused: badImage },
  "an image with a short digest": { manifest: withImage("dicom@sha256:abc"), refused: badImage },
  "an image ID": { manifest: withImage(hex), refused: badImage },
  "an image of 513 characters": {
    manifest: withImage(`a/${"b".repeat(511)}`),
    refused: { path: "spec.defaultImage", words: "at most 512", serverWords: "may not be more than 512" },
  },
  "an image that is a number": {
    manifest: withImage(2),
    refused: { path: "spec.defaultImage", words: "is 2, not a text", serverWords: "must be of type string" },
  },
  "a tier's bad image": {
    manifest: withTier({ image: "Bad" }),
    refused: { path: "spec.tiers[0].image", words: "write an image as" },
  },

  // Tiers.
  "the same tier twice": {
    manifest: serviceImage({ tiers: [{ upgradeTier: "a" }, { upgradeTier: "b" }, { upgradeTier: "a" }] }),
    refused: { path: "spec.tiers[2]", words: 'upgradeTier "a" is there already', serverWords: "Duplicate value" },
  },
  "the unnamed tier twice": {
    manifest: serviceImage({ tiers: [{ priority: 1 }, { upgradeTier: "" }] }),
    refused: { path: "spec.tiers[1]", words: "repeats spec.tiers[0]", serverWords: "Duplicate value" },
  },
  "65 tiers": {
    manifest: serviceImage({ tiers: Array.from({ length: 65 }, (_, i) => ({ upgradeTier: `tier-${i}` })) }),
    refused: { path: "spec.tiers", words: "at most 64 tiers", serverWords: "must have at most 64 items" },
  },
  "a tier that is no label value": {
    manifest: serviceImage({ tiers: [{ upgradeTier: "early access" }] }),
    refused: { path: "spec.tiers[0].upgradeTier", words: "a tier is named by a label value" },
  },
  "64 tiers and a default image for the objects of none": {
    manifest: serviceImage({ tiers: Array.from({ length: 64 }, (_, i) => ({ upgradeTier: `tier-${i}` })) }),
    refused: { path: "spec.tiers", words: "leave no room for objects of no tier" },
  },
  "a tier's name of 64 characters": {
    manifest: serviceImage({ tiers: [{ upgradeTier: "t".repeat(64) }] }),
    refused: { path: "spec.tiers[0].upgradeTier", words: "at most 63", serverWords: "may not be more than 63" },
  },
  "a priority beyond int32": {
    manifest: withTier({ priority: 2147483648 }),
    refused: { path: "spec.tiers[0].priority", words: "the most is 2147483647", serverWords: tooMany },
  },
  "a priority with a fraction": {
    manifest: withTier({ priority: 1.5 }),
    refused: { path: "spec.tiers[0].priority", words: "write a whole number", serverWords: "must be of type int32" },
  },
  "a priority in quotes": {
    manifest: withTier({ priority: "1" }),
    refused: {
      path: "spec.tiers[0].priority",
      words: 'is "1", not a whole number',
      serverWords: "must be of type integer",
    },
  },
  "steps that fall": {
    manifest: withTier({ steps: [{ percent: 50 }, { percent: 10 }] }),
    refused: { path: "spec.tiers[0].steps", words: "smallest percent first" },
  },
  "the same step twice": {
    manifest: withTier({ steps: [{ percent: 10 }, { percent: 10 }] }),
    refused: {
      path: "spec.tiers[0].steps[1]",
      words: "percent 10 is there already",
      serverWords: "Duplicate value",
    },
  },
  "a step of nothing": {
    manifest: withTier({ steps: [{ percent: 0 }] }),
    refused: { path: "spec.tiers[0].steps[0].percent", words: "from 1 to 100", serverWords: tooFew },
  },
  "a step without percent": {
    manifest: withTier({ steps: [{ soakSeconds: 60 }] }),
    refused: {
      path: "spec.tiers[0].steps[0].percent",
      words: "write a whole number from 1 to 100",
      serverWords: "Required value",
    },
  },
  "a soak of a year": {
    manifest: withTier({ steps: [{ percent: 1, soakSeconds: 31_536_000 }] }),
    refused: { path: "spec.tiers[0].steps[0].soakSeconds", words: "30 days", serverWords: tooMany },
  },
  "nothing at once": {
    manifest: withTier({ maxConcurrent: 0 }),
    refused: { path: "spec.tiers[0].maxConcurrent", words: "a number from 1", serverWords: tooFew },
  },
  "no percent at once": {
    manifest: withTier({ maxConcurrent: "0%" }),
    refused: { path: "spec.tiers[0].maxConcurrent", words: 'from "1%" to "100%"', serverWords: "should match" },
  },
  "a number in quotes without a percent sign": {
    manifest: withTier({ maxConcurrent: "10" }),
    refused: { path: "spec.tiers[0].maxConcurrent", words: "write a number from 1", serverWords: "should match" },
  },
  "more than everything": {
    manifest: withTier({ failureBudget: "101%" }),
    refused: { path: "spec.tiers[0].failureBudget", words: 'from "0%" to "100%"', serverWords: "should match" },
  },
  "a negative budget": {
    manifest: withTier({ failureBudget: -1 }),
    refused: { path: "spec.tiers[0].failureBudget", words: "a number from 0", serverWords: tooFew },
  },
  "no time at all": {
    manifest: withTier({ progressDeadlineSeconds: 0 }),
    refused: { path: "spec.tiers[0].progressDeadlineSeconds", words: "7 days", serverWords: tooFew },
  },
  "InPlaceOnly for a custom kind": {
    manifest: withTier({ updateStrategy: "InPlaceOnly" }),
    refused: { path: "spec.tiers", words: "updated by their own controllers, never in place" },
  },
  "a tier that is a text": {
    manifest: serviceImage({ tiers: ["early"] }),
    refused: { path: "spec.tiers[0]", words: 'is "early", not an object', serverWords: "must be of type object" },
  },
  "a tier that is null": {
    manifest: serviceImage({ tiers: [null] }),
    refused: { path: "spec.tiers[0]", words: "is null, not an object", serverWords: "must be of type object" },
  },
  "tiers by name": {
    manifest: serviceImage({ tiers: { early: {} } }),
    refused: { path: "spec.tiers", words: "is an object, not a list", serverWords: "must be of type array" },
  },

  // The rest of the spec.
  "an unknown way to fail": {
    manifest: serviceImage({ onFailure: "rollback" }),
    refused: {
      path: "spec.onFailure",
      words: "write Halt or Rollback (did you mean Rollback?)",
      serverWords: "Unsupported value",
    },
  },
  "paused in quotes": {
    manifest: serviceImage({ paused: "true" }),
    refused: { path: "spec.paused", words: "not true or false", serverWords: "must be of type boolean" },
  },
  "a negative pace": {
    manifest: serviceImage({ pace: { podsPerSecond: -1 } }),
    refused: { path: "spec.pace.podsPerSecond", words: "0 (no limit)", serverWords: tooFew },
  },
  "a pace without its name": {
    manifest: serviceImage({ pace: 10 }),
    refused: { path: "spec.pace", words: "is 10, not an object", serverWords: "must be of type object" },
  },
  "no time to cache": {
    manifest: serviceImage({ preCacheTimeoutSeconds: 0 }),
    refused: { path: "spec.preCacheTimeoutSeconds", words: "one day", serverWords: tooFew },
  },

  // Metadata.
  "a name in upper case": {
    manifest: serviceImage({}, { name: "Dicom" }),
    refused: { path: "metadata.name", words: "lower-case letters", serverWords: "RFC 1123" },
  },
  "a namespace is dropped with a warning": {
    manifest: serviceImage({}, { namespace: "prod" }),
    warned: { path: "metadata.namespace", words: "the whole cluster", serverIsSilent: true },
  },
  "a label with a space": {
    manifest: serviceImage({}, { labels: { a: "b c" } }),
    refused: {
      path: "metadata.labels[a]",
      words: "at most 63 letters",
      serverWords: "a valid label must be",
      serverPath: "metadata.labels",
    },
  },
}
