import type { Case } from "./serviceimage.ts"

/** Manifests of the kinds that bring images to nodes, and what must be said of them. */

type Fields = Record<string, unknown>

const apiVersion = "autoimagemanager.io/v1alpha1"
const digest = `sha256:${"0123456789abcdef".repeat(4)}`

const job = (spec: Fields) => ({
  apiVersion,
  kind: "ImagePullJob",
  metadata: { name: "app", namespace: "default" },
  spec: { image: "registry.example.com/team/app:v2", ...spec },
})
const list = (spec: Fields) => ({
  apiVersion,
  kind: "ImageListPullJob",
  metadata: { name: "apps", namespace: "default" },
  spec: { images: ["nginx:1", "busybox:1"], ...spec },
})
const node = (images: Fields) => ({ apiVersion, kind: "NodeImage", metadata: { name: "node-1" }, spec: { images } })
const withTag = (fields: Fields) => node({ nginx: { tags: [{ tag: "1", ...fields }] } })
const times = <T>(length: number, make: (index: number) => T) => Array.from({ length }, (_, index) => make(index))

export const nodeImageCases: Record<string, Case> = {
  "the smallest manifest": { manifest: node({}) },
  "an image by tag, one by digest and one by both": {
    manifest: node({ nginx: { tags: [{ tag: "1" }, { tag: digest }, { tag: `1.2@${digest}` }] } }),
  },
  "every field": {
    manifest: withTag({
      createdAt: "2026-01-31T12:00:00Z",
      version: 3,
      imagePullPolicy: "Always",
      priority: 5,
      ownerReferences: [{ apiVersion, kind: "ImagePullJob", namespace: "default", name: "app", uid: "a-1" }],
      pullPolicy: { timeoutSeconds: 60, backoffLimit: 0, ttlSecondsAfterFinished: 5, activeDeadlineSeconds: 600 },
      sealedCredentials: [{ job: "a-1", key: "Zm9v", box: "YmFy" }],
    }),
  },
  "256 images": { manifest: node(Object.fromEntries(times(256, index => [`a${index}`, { tags: [{ tag: "1" }] }]))) },
  "more than 256 images": {
    manifest: node(Object.fromEntries(times(257, index => [`a${index}`, { tags: [] }]))),
    refused: { path: "spec.images", words: "at most 256" },
  },
  "more than 256 tags": {
    manifest: node(
      Object.fromEntries(times(5, image => [`a${image}`, { tags: times(60, index => ({ tag: `v${index}` })) }])),
    ),
    refused: { path: "spec.images", words: "at most 256 images" },
  },
  "the same tag twice": {
    manifest: node({ nginx: { tags: [{ tag: "1" }, { tag: "1" }] } }),
    refused: { path: "spec.images[nginx].tags[1]", words: "repeats", serverWords: "Duplicate value" },
  },
  "a tag that is none": {
    manifest: withTag({ tag: "a/b" }),
    refused: {
      path: "spec.images[nginx].tags[0].tag",
      words: "write a tag such as v2",
      serverPath: "spec.images.nginx.tags[0].tag",
      serverWords: "should match '^([A-Za-z0-9_]",
    },
  },
}

const spec = "spec"
const tooFew = "should be greater than or equal to"
const duplicate = "Duplicate value"
const shared = (of: (fields: Fields) => object): Record<string, Case> => ({
  "a parallelism in percent": { manifest: of({ parallelism: "30%" }) },
  "a paused job": { manifest: of({ parallelism: 0 }) },
  "more than all nodes at once": {
    manifest: of({ parallelism: "101%" }),
    refused: {
      path: `${spec}.parallelism`,
      words: 'a percentage from "0%" to "100%"',
      serverWords: "should match '^([0-9]|[1-9][0-9]|100)%$'",
    },
  },
  "a negative parallelism": {
    manifest: of({ parallelism: -1 }),
    refused: { path: `${spec}.parallelism`, words: "write a number from 0", serverWords: `${tooFew} 0` },
  },
  "both selectors": {
    manifest: of({ selector: { names: ["a"] }, podSelector: { matchLabels: { app: "a" } } }),
    refused: { path: `${spec}.podSelector`, words: "either selector or podSelector" },
  },
  "nodes by name and by labels": {
    manifest: of({ selector: { names: ["a"], matchLabels: { zone: "b" } } }),
    refused: { path: `${spec}.selector`, words: "either names or labels" },
  },
  "a node twice": {
    manifest: of({ selector: { names: ["a", "a"] } }),
    refused: { path: `${spec}.selector.names[1]`, words: "repeats", serverWords: duplicate },
  },
  "no node by name": {
    manifest: of({ selector: { names: [] } }),
    refused: { path: `${spec}.selector.names`, words: "at least one name", serverWords: "at least 1 items" },
  },
  "a Secret twice": {
    manifest: of({ pullSecrets: ["a", "a"] }),
    refused: { path: `${spec}.pullSecrets[1]`, words: "repeats", serverWords: duplicate },
  },
  "a Secret of another namespace": {
    manifest: of({ pullSecrets: ["other/a"] }),
    refused: {
      path: `${spec}.pullSecrets[0]`,
      words: "a Secret in the same namespace",
      serverWords: "should match '^[a-z0-9]",
    },
  },
  "a deadline below the time of one pull": {
    manifest: of({ completionPolicy: { activeDeadlineSeconds: 599 } }),
    refused: { path: `${spec}.completionPolicy.activeDeadlineSeconds`, words: "at least pullPolicy.timeoutSeconds" },
  },
  "a deadline of exactly one pull": {
    manifest: of({ pullPolicy: { timeoutSeconds: 30 }, completionPolicy: { activeDeadlineSeconds: 30 } }),
  },
  "a time to live of a job that does not end": {
    manifest: of({ completionPolicy: { type: "Never", ttlSecondsAfterFinished: 5 } }),
    refused: { path: `${spec}.completionPolicy.ttlSecondsAfterFinished`, words: "leave ttlSecondsAfterFinished out" },
  },
  "a deadline of a job that does not end": {
    manifest: of({ completionPolicy: { type: "Never", activeDeadlineSeconds: 6000 } }),
    refused: { path: `${spec}.completionPolicy.activeDeadlineSeconds`, words: "leave activeDeadlineSeconds out" },
  },
  "a pull of no time": {
    manifest: of({ pullPolicy: { timeoutSeconds: 0 } }),
    refused: { path: `${spec}.pullPolicy.timeoutSeconds`, words: "from 1 to 86400", serverWords: `${tooFew} 1` },
  },
  "every field": {
    manifest: of({
      pullSecrets: ["registry", "registry.two"],
      podSelector: { matchLabels: { app: "web" }, matchExpressions: [{ key: "tier", operator: "Exists" }] },
      parallelism: 10,
      pullPolicy: { timeoutSeconds: 300, backoffLimit: 2 },
      completionPolicy: { type: "Always", activeDeadlineSeconds: 1200, ttlSecondsAfterFinished: 300 },
      imagePullPolicy: "Always",
      priority: 10,
      sandboxConfig: { labels: { "io.kubernetes.image.metrics.tags": "a" }, annotations: { "example.com/a": "b" } },
    }),
  },
})

export const imagePullJobCases: Record<string, Case> = {
  "the smallest manifest": { manifest: job({}) },
  "an image by digest": { manifest: job({ image: `nginx@${digest}` }) },
  "no image": {
    manifest: job({ image: "" }),
    refused: { path: "spec.image", words: "write an image", serverWords: "should be at least 1 chars long" },
  },
  "an image that is none": {
    manifest: job({ image: "registry.example.com/Team/App:v2" }),
    refused: { path: "spec.image", words: "the path is in lower case" },
  },
  ...shared(job),
}

export const imageListPullJobCases: Record<string, Case> = {
  "the smallest manifest": { manifest: list({}) },
  "256 images": { manifest: list({ images: times(256, index => `a${index}:1`) }) },
  "more than 256 images": {
    manifest: list({ images: times(257, index => `a${index}:1`) }),
    refused: { path: "spec.images", words: "from 1 to 256 images", serverWords: "must have at most 256 items" },
  },
  "no images": {
    manifest: list({ images: [] }),
    refused: { path: "spec.images", words: "from 1 to 256 images", serverWords: "at least 1 items" },
  },
  "an image twice": {
    manifest: list({ images: ["nginx:1", "nginx:1"] }),
    refused: { path: "spec.images[1]", words: "repeats", serverWords: duplicate },
  },
  "an image that is none": {
    manifest: list({ images: ["nginx:1", "a b"] }),
    refused: { path: "spec.images[1]", words: "write an image as" },
  },
  ...shared(list),
}
