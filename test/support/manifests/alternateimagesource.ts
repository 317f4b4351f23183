import type { Case } from "./serviceimage.ts"

/** Manifests of AlternateImageSources and what must be said of them, by our validator and by a real kube-apiserver. */

type Fields = Record<string, unknown>

const equivalentRepositories = ["quay.io/team/app", "team/app"]
const deployment = { group: "apps", kind: "deployment" }

/** A calm AlternateImageSource, with the one difference that matters. */
const alternateImageSource = (spec: Fields) => ({
  apiVersion: "autoimagemanager.io/v1alpha1",
  kind: "AlternateImageSource",
  metadata: { name: "app", namespace: "default" },
  spec: { imageSourceReplacements: [{ equivalentRepositories }], ...spec },
})
const withRepositories = (...list: unknown[]) =>
  alternateImageSource({ imageSourceReplacements: [{ equivalentRepositories: list }] })
const withTarget = (fields: Fields) =>
  alternateImageSource({
    imageSourceReplacements: [{ equivalentRepositories, targets: [{ type: deployment, name: "app", ...fields }] }],
  })
const withPolicy = (policy: Fields) => alternateImageSource({ policy })
const times = <T>(length: number, make: (index: number) => T) => Array.from({ length }, (_, index) => make(index))

const sets = "spec.imageSourceReplacements"
const badRepository = { path: `${sets}[0].equivalentRepositories[1]`, words: "write a repository as" }
const badTarget = `${sets}[0].targets[0]`
const tooFew = "should be greater than or equal to"
const tooMany = "should be less than or equal to"

export const cases: Record<string, Case> = {
  // Good ones.
  "the smallest manifest": { manifest: alternateImageSource({}) },
  "the original document's example": {
    manifest: {
      apiVersion: "autoimagemanager.io/v1alpha1",
      kind: "AlternateImageSource",
      metadata: { name: "demo" },
      spec: {
        imageSourceReplacements: [
          {
            equivalentRepositories: ["quay.io/fairwinds/docker-demo", "ehazlett/docker-demo"],
            targets: [
              { type: { group: "apps", kind: "deployment" }, name: "demo3-basic-demo" },
              { type: { group: "apps", kind: "deployment" }, name: "demo2-basic-demo" },
            ],
          },
        ],
      },
    },
  },
  "every field": {
    manifest: alternateImageSource({
      imageSourceReplacements: [
        {
          equivalentRepositories: [
            "nginx",
            "Mirror.example.com:5000/library/nginx",
            "[::1]:5000/nginx",
            "localhost/nginx",
          ],
          targets: [
            { type: { kind: "StatefulSet" }, name: "db", container: "main" },
            { type: deployment, labelSelector: { matchLabels: { "example.com/team": "shop" } } },
            { type: { group: "services.example.com", kind: "Dicom" }, labelSelector: {} },
          ],
        },
        { equivalentRepositories: ["a__b/c-d---e/f.g_h"] },
      ],
      policy: {
        apply: "Template",
        onAuthError: "Switch",
        requireSameDigest: "Always",
        switchBack: "WhenHealthy",
        confirmSeconds: 0,
        cooldownSeconds: 86_400,
        templateShare: "100%",
        overrideGitOps: true,
        disabledRepositories: ["quay.io/team/app"],
      },
    }),
  },
  "an empty policy has its defaults": { manifest: withPolicy({}) },
  "null is as if it were absent": { manifest: alternateImageSource({ policy: null }) },
  "no set at all": { manifest: alternateImageSource({ imageSourceReplacements: [] }) },
  "sixty-four targets": {
    manifest: alternateImageSource({
      imageSourceReplacements: [
        { equivalentRepositories, targets: times(64, index => ({ type: deployment, name: `app-${index}` })) },
      ],
    }),
  },
  "a repository of 255 characters": { manifest: withRepositories("quay.io/app", `a/${"b".repeat(253)}`) },

  // Unknown fields.
  "a misspelt field is dropped with a warning": {
    manifest: withPolicy({ switchback: "Never" }),
    warned: { path: "spec.policy.switchback", words: "did you mean switchBack?" },
  },
  "a target's uid is dropped with a warning": {
    manifest: withTarget({ uid: "233ac88f-c125-4125-8788-e95f8531a181" }),
    warned: { path: `${badTarget}.uid`, words: "is not a field" },
  },

  // Sets.
  "no sets": {
    manifest: alternateImageSource({ imageSourceReplacements: undefined }),
    refused: { path: sets, words: "is missing: write at least one set", serverWords: "Required value" },
  },
  "33 sets": {
    manifest: alternateImageSource({ imageSourceReplacements: times(33, () => ({ equivalentRepositories })) }),
    refused: { path: sets, words: "at most 32", serverWords: "must have at most 32 items" },
  },
  "a set without repositories": {
    manifest: alternateImageSource({ imageSourceReplacements: [{}] }),
    refused: {
      path: `${sets}[0].equivalentRepositories`,
      words: "is missing: write at least two repositories",
      serverWords: "Required value",
    },
  },
  "an empty set": {
    manifest: withRepositories(),
    refused: {
      path: `${sets}[0].equivalentRepositories`,
      words: "write at least two repositories",
      serverWords: "at least 1 items",
    },
  },
  "17 repositories": {
    manifest: withRepositories(...times(17, index => `quay.io/app${index}`)),
    refused: {
      path: `${sets}[0].equivalentRepositories`,
      words: "at most 16",
      serverWords: "must have at most 16 items",
    },
  },
  "the same repository twice": {
    manifest: withRepositories("quay.io/app", "quay.io/app"),
    refused: { path: badRepository.path, words: "repeats", serverWords: "Duplicate value" },
  },
  "a repository with a tag": { manifest: withRepositories("quay.io/app", "team/app:v1"), refused: badRepository },
  "a repository with a digest": {
    manifest: withRepositories("quay.io/app", `team/app@sha256:${"0123456789abcdef".repeat(4)}`),
    refused: badRepository,
  },
  "a repository that is only a host": {
    manifest: withRepositories("quay.io/app", "quay.io:443"),
    refused: badRepository,
  },
  "a repository in upper case": { manifest: withRepositories("quay.io/app", "quay.io/App"), refused: badRepository },
  "a repository with a scheme": {
    manifest: withRepositories("quay.io/app", "https://quay.io/b"),
    refused: badRepository,
  },
  "a repository with a star": { manifest: withRepositories("quay.io/app", "quay.io/*"), refused: badRepository },
  "an empty repository": { manifest: withRepositories("quay.io/app", ""), refused: badRepository },
  "a repository of 256 characters": {
    manifest: withRepositories("quay.io/app", `a/${"b".repeat(254)}`),
    refused: { path: badRepository.path, words: "at most 255", serverWords: "may not be more than 255" },
  },

  // Targets.
  "a target without type": {
    manifest: withTarget({ type: undefined }),
    refused: { path: `${badTarget}.type`, words: "is missing", serverWords: "Required value" },
  },
  "a target without kind": {
    manifest: withTarget({ type: { group: "apps" } }),
    refused: { path: `${badTarget}.type.kind`, words: "such as deployment", serverWords: "Required value" },
  },
  "a target with neither name nor labels": {
    manifest: withTarget({ name: undefined }),
    refused: { path: badTarget, words: "write either name or labelSelector" },
  },
  "a target with name and labels": {
    manifest: withTarget({ labelSelector: {} }),
    refused: { path: badTarget, words: "write either name or labelSelector" },
  },
  "a target with an empty name": {
    manifest: withTarget({ name: "" }),
    refused: { path: `${badTarget}.name`, words: "write the name of a workload", serverWords: "at least 1 chars long" },
  },
  "a target in another namespace": {
    manifest: withTarget({ name: "../tenant-b/web" }),
    refused: { path: `${badTarget}.name`, words: "write the name of a workload", serverWords: "should match" },
  },
  "a target with a control character in its name": {
    manifest: withTarget({ name: "web\u001b[2J" }),
    refused: { path: `${badTarget}.name`, words: "write the name of a workload", serverWords: "should match" },
  },
  "a target whose kind is no word": {
    manifest: withTarget({ type: { group: "apps", kind: "deployment\n" } }),
    refused: { path: `${badTarget}.type.kind`, words: "write a kind", serverWords: "should match" },
  },
  "a target whose group is no group": {
    manifest: withTarget({ type: { group: "apps v1", kind: "deployment" } }),
    refused: { path: `${badTarget}.type.group`, words: "write an API group", serverWords: "should match" },
  },
  "a target whose container is no name": {
    manifest: withTarget({ container: "app/../x" }),
    refused: { path: `${badTarget}.container`, words: "write the name of a container", serverWords: "should match" },
  },
  "65 targets": {
    manifest: alternateImageSource({
      imageSourceReplacements: [
        { equivalentRepositories, targets: times(65, index => ({ type: deployment, name: `app-${index}` })) },
      ],
    }),
    refused: { path: `${sets}[0].targets`, words: "at most 64", serverWords: "must have at most 64 items" },
  },

  // Policy.
  "an unknown way to apply": {
    manifest: withPolicy({ apply: "pod" }),
    refused: { path: "spec.policy.apply", words: "did you mean Pod?", serverWords: "Unsupported value" },
  },
  "negative seconds": {
    manifest: withPolicy({ confirmSeconds: -1 }),
    refused: { path: "spec.policy.confirmSeconds", words: "from 0 to 3600", serverWords: tooFew },
  },
  "a cool-down of more than a day": {
    manifest: withPolicy({ cooldownSeconds: 86_401 }),
    refused: { path: "spec.policy.cooldownSeconds", words: "from 0 to 86400", serverWords: tooMany },
  },
  "a share of zero": {
    manifest: withPolicy({ templateShare: "0%" }),
    refused: { path: "spec.policy.templateShare", words: 'from "1%" to "100%"', serverWords: "should match" },
  },
  "a share that is a number": {
    manifest: withPolicy({ templateShare: 50 }),
    refused: { path: "spec.policy.templateShare", words: 'from "1%" to "100%"', serverWords: "must be of type string" },
  },
  "a disabled repository with a tag": {
    manifest: withPolicy({ disabledRepositories: ["quay.io/app:v1"] }),
    refused: { path: "spec.policy.disabledRepositories[0]", words: "write a repository as" },
  },
}
