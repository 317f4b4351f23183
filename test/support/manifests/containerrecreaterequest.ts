import type { Case } from "./serviceimage.ts"

/** Manifests of ContainerRecreateRequests and what must be said of them, by our validator and by a real kube-apiserver. */

type Fields = Record<string, unknown>

/** A calm request, with the one difference that matters. */
const request = (spec: Fields) => ({
  apiVersion: "autoimagemanager.io/v1alpha1",
  kind: "ContainerRecreateRequest",
  metadata: { name: "restart", namespace: "default" },
  spec: { podName: "web-0", containers: [{ name: "app" }], ...spec },
})
const withStrategy = (strategy: Fields, spec: Fields = {}) => request({ strategy, ...spec })
const times = <T>(length: number, make: (index: number) => T) => Array.from({ length }, (_, index) => make(index))

const deadline = "spec.activeDeadlineSeconds"
const tooFew = "should be greater than or equal to"

export const cases: Record<string, Case> = {
  // Good ones.
  "the smallest manifest": { manifest: request({}) },
  "the original document's example": {
    manifest: {
      apiVersion: "autoimagemanager.io/v1alpha1",
      kind: "ContainerRecreateRequest",
      metadata: { namespace: "pod-namespace", name: "xxx" },
      spec: {
        podName: "pod-name",
        containers: [{ name: "app" }, { name: "sidecar" }],
        strategy: {
          failurePolicy: "Fail",
          orderedRecreate: false,
          terminationGracePeriodSeconds: 30,
          unreadyGracePeriodSeconds: 3,
          minStartedSeconds: 10,
        },
        activeDeadlineSeconds: 300,
        ttlSecondsAfterFinished: 1800,
      },
    },
  },
  "a force that OpenKruise knows": { manifest: withStrategy({ forceRecreate: true, failurePolicy: "Ignore" }) },
  "a grace period of nothing": { manifest: withStrategy({ terminationGracePeriodSeconds: 0 }) },
  "the shortest deadline": { manifest: request({ activeDeadlineSeconds: 3 }) },
  "the same again": { manifest: request({}), old: request({}) },

  // Bad ones.
  "no pod": {
    manifest: { ...request({}), spec: { containers: [{ name: "app" }] } },
    refused: { path: "spec.podName", words: "missing", serverWords: "Required value" },
  },
  "no containers": { manifest: request({ containers: [] }), refused: { path: "spec.containers", words: "at least" } },
  "a container without a name": {
    manifest: request({ containers: [{ name: "" }] }),
    refused: {
      path: "spec.containers[0].name",
      words: "write the name of a container",
      serverWords: "should match '^[a-z0-9]",
    },
  },
  "a container twice": {
    manifest: request({ containers: [{ name: "app" }, { name: "app" }] }),
    refused: { path: "spec.containers[1]", words: "app" },
  },
  "too many containers": {
    manifest: request({ containers: times(65, index => ({ name: `c${index}` })) }),
    refused: { path: "spec.containers", words: "64" },
  },
  "a deadline below 3 s": {
    manifest: request({ activeDeadlineSeconds: 2 }),
    refused: { path: deadline, words: "write seconds, from 3", serverWords: `${tooFew} 3` },
  },
  "a grace period as long as the deadline": {
    manifest: withStrategy({ terminationGracePeriodSeconds: 30 }, { activeDeadlineSeconds: 30 }),
    refused: { path: deadline, words: "must be less than activeDeadlineSeconds" },
  },
  "waits that together take as long as the deadline": {
    manifest: withStrategy(
      { terminationGracePeriodSeconds: 10, unreadyGracePeriodSeconds: 10, minStartedSeconds: 10 },
      { activeDeadlineSeconds: 30 },
    ),
    refused: { path: deadline, words: "must be less than activeDeadlineSeconds" },
  },
  "a negative grace period": {
    manifest: withStrategy({ terminationGracePeriodSeconds: -1 }),
    refused: {
      path: "spec.strategy.terminationGracePeriodSeconds",
      words: "write seconds, from 0",
      serverWords: `${tooFew} 0`,
    },
  },
  "a negative drain": {
    manifest: withStrategy({ unreadyGracePeriodSeconds: -1 }),
    refused: {
      path: "spec.strategy.unreadyGracePeriodSeconds",
      words: "write seconds, from 0",
      serverWords: `${tooFew} 0`,
    },
  },
  "a failure policy that does not exist": {
    manifest: withStrategy({ failurePolicy: "Retry" }),
    refused: { path: "spec.strategy.failurePolicy", words: "Fail" },
  },
  "a changed request": {
    manifest: request({ podName: "web-1" }),
    old: request({}),
    refused: { path: "spec", words: "delete it and create another" },
  },
  "a hook of one's own": {
    manifest: request({ containers: [{ name: "app", preStop: { exec: { command: ["reboot"] } } }] }),
    warned: { path: "spec.containers[0].preStop", words: "drops it" },
  },
}
