import type { Case } from "./serviceimage.ts"

/** Manifests of Canaries and what must be said of them, by our validator and by a real kube-apiserver. */

type Fields = Record<string, unknown>

const apiVersion = "autoimagemanager.io/v1alpha1"
const targetRef = { apiVersion: "apps/v1", kind: "Deployment", name: "web" }
const calm = { interval: "1m", threshold: 5 }
const gateway = { name: "public", namespace: "gateways" }

/** A calm Canary, with the one difference that matters. */
const canary = (spec: Fields) => ({
  apiVersion,
  kind: "Canary",
  metadata: { name: "web", namespace: "default" },
  spec: { targetRef, service: { port: 80 }, analysis: { ...calm, stepWeight: 10 }, ...spec },
})
const withService = (fields: Fields, spec: Fields = {}) => canary({ service: { port: 80, ...fields }, ...spec })
const withAnalysis = (fields: Fields, spec: Fields = {}) => canary({ analysis: { ...calm, ...fields }, ...spec })
const withTarget = (fields: Fields, spec: Fields = {}) => canary({ targetRef: { ...targetRef, ...fields }, ...spec })
/** A trait of an OAM component. */
const oam = (spec: Fields) =>
  canary({ provider: "oam", service: { name: "web", port: 80, gatewayRefs: [gateway] }, ...spec })
/** With the steps of OAM's plan. */
const planned = (rolloutPlan: Fields, spec: Fields = {}) => oam({ analysis: calm, rolloutPlan, ...spec })
const metricsOf = (count: number) => Array.from({ length: count }, (_, index) => ({ name: `m${index}`, query: "1" }))
const withMetric = (fields: Fields) => withAnalysis({ stepWeight: 10, metrics: [{ name: "errors", ...fields }] })
const withWebhook = (fields: Fields) =>
  withAnalysis({ stepWeight: 10, webhooks: [{ name: "test", url: "http://tester.default/", ...fields }] })

const oneStrategy = { path: "spec.analysis", words: "exactly one of iterations" }
const rising = { path: "spec.analysis.stepWeights", words: "the smallest first" }
const tooFew = "should be greater than or equal to"
const tooMany = "should be less than or equal to"
const unsupported = "Unsupported value"
const required = "Required value"

export const canaryCases: Record<string, Case> = {
  // Good ones.
  "the smallest manifest": { manifest: canary({}) },
  "a canary on a gateway, with metrics of another namespace and a load test": {
    manifest: canary({
      provider: "gatewayapi:v1",
      progressDeadlineSeconds: 60,
      autoscalerRef: { apiVersion: "autoscaling/v2", kind: "HorizontalPodAutoscaler", name: "web" },
      service: { port: 8080, targetPort: "http", hosts: ["shop.example.com"], gatewayRefs: [gateway] },
      analysis: {
        interval: "15s",
        threshold: 15,
        maxWeight: 50,
        stepWeight: 10,
        metrics: [
          { name: "request-success-rate", interval: "1m", thresholdRange: { min: 99 } },
          {
            name: "latency",
            interval: "30s",
            thresholdRange: { max: 0.5 },
            templateRef: { name: "latency", namespace: "monitoring" },
          },
        ],
        webhooks: [
          {
            name: "load",
            url: "http://tester.default/",
            timeout: "5s",
            metadata: { type: "cmd", cmd: "hey -z 1m http://web-canary.default/" },
          },
        ],
      },
    }),
  },
  "a canary on a gateway of the flag's provider, with session affinity": {
    manifest: withAnalysis(
      {
        stepWeight: 10,
        maxWeight: 50,
        sessionAffinity: { cookieName: "canary", primaryCookieName: "primary", maxAge: 3600 },
      },
      { service: { port: 8080, portName: "http", gatewayRefs: [gateway] } },
    ),
  },
  "A/B on a gateway, by header and by cookie": {
    manifest: withAnalysis(
      {
        iterations: 10,
        match: [{ headers: { "x-canary": { regex: ".*insider.*" } } }, { headers: { cookie: { exact: "canary" } } }],
      },
      { provider: "gatewayapi:v1beta1", service: { port: 80, gatewayRefs: [gateway] } },
    ),
  },
  "Blue/Green with copied requests on a gateway": {
    manifest: withAnalysis(
      { iterations: 5, mirror: true },
      { provider: "gatewayapi", service: { port: 80, gatewayRefs: [gateway] } },
    ),
  },
  "Blue/Green without a mesh, with a gate and a test before": {
    manifest: canary({
      provider: "kubernetes",
      service: { name: "web-svc", port: 80, targetPort: 9898, portDiscovery: true },
      analysis: {
        ...calm,
        iterations: 5,
        metrics: [{ name: "request-duration", interval: "30s", thresholdRange: { max: 500 } }],
        webhooks: [
          { name: "gate", type: "confirm-rollout", url: "http://tester.default/gate/approve" },
          { name: "test", type: "pre-rollout", url: "https://tester.default/", timeout: "10s", metadata: { cmd: "x" } },
        ],
      },
    }),
  },
  "a DaemonSet without a mesh": { manifest: withTarget({ kind: "DaemonSet" }, { provider: "kubernetes" }) },
  "a StatefulSet": { manifest: withTarget({ kind: "StatefulSet" }) },
  "a Service": { manifest: withTarget({ apiVersion: "v1", kind: "Service" }) },
  "a Knative Service has no service of its own": {
    manifest: withTarget(
      { apiVersion: "serving.knative.dev/v1", kind: "Service" },
      {
        provider: "knative",
        service: undefined,
      },
    ),
  },
  "a revision of an OAM component": {
    manifest: oam({
      targetRef: { apiVersion: "core.oam.dev/v1alpha2", kind: "ContainerizedWorkload", name: "web-v2" },
      sourceRef: { apiVersion: "apps/v1", kind: "Deployment", name: "web-v1" },
      canaryReplicas: 1,
    }),
  },
  "a plan of OAM": {
    manifest: planned({
      rolloutStrategy: "DecreaseFirst",
      targetSize: 4,
      numBatches: 2,
      rolloutBatches: [
        { replicas: "25%", podList: ["web-1"], maxUnavailable: 1, instanceInterval: 5, canaryMetric: [] },
        { replicas: 3 },
      ],
      batchPartition: 1,
      paused: true,
      rolloutWebhooks: [
        ...["initialize-rollout", "pre-batch-rollout", "post-batch-rollout", "finalize-rollout"].map(type => ({
          ...{ type, name: type, url: "http://tester.default/", method: "POST", expectedStatus: [200, 202] },
          metadata: { team: "shop" },
        })),
      ],
      canaryMetric: [
        { name: "errors", interval: "30s", metricsRange: { min: 0, max: 1 }, templateRef: { name: "errors" } },
        { name: "request-success-rate", metricsRange: { min: 99 } },
      ],
    }),
  },
  "an empty plan of OAM": { manifest: planned({}) },
  "a revision of an OAM component in a mesh": { manifest: oam({ service: { name: "web", port: 80 } }) },
  "a provider that has no router here": { manifest: canary({ provider: "linkerd" }) },
  "a threshold of 0, as Flagger takes it": { manifest: withAnalysis({ threshold: 0, stepWeight: 5 }) },
  "an interval with more behind it": { manifest: withAnalysis({ interval: "1m30s", stepWeight: 5 }) },
  "rising weights beside a maximum": { manifest: withAnalysis({ stepWeights: [1, 2, 10, 80, 100], maxWeight: 80 }) },
  "a hook and an alert with an empty word": {
    manifest: withAnalysis({
      stepWeight: 10,
      webhooks: [{ name: "load", type: "", url: "http://tester.default/" }],
      alerts: [{ name: "all", severity: "", providerRef: { name: "slack", namespace: "monitoring" } }],
    }),
  },
  "two hooks and two metrics of one name": {
    manifest: withAnalysis({
      stepWeight: 10,
      webhooks: ["a", "b"].map(path => ({ name: "load", url: `http://tester.default/${path}` })),
      metrics: [99, 95].map(min => ({ name: "request-success-rate", thresholdRange: { min } })),
    }),
  },
  "everything that Flagger does not have": {
    manifest: canary({
      canaryReplicas: 2,
      scaleDownDelaySeconds: 300,
      onFailure: "Freeze",
      requireApproval: ["Rollout", "TrafficIncrease", "Promotion"],
      analysis: {
        ...calm,
        stepWeight: 10,
        initialDelay: "30s",
        noData: "Pass",
        errorLimit: 10,
        metrics: [{ name: "request-duration", relativeTo: "Source", thresholdRange: { max: 1.2 } }],
        webhooks: [
          {
            name: "gate",
            type: "confirm-promotion",
            url: "https://example.com/gate",
            secretRef: { name: "hooks" },
            deadline: "24h",
            onDeadline: "Continue",
          },
        ],
      },
    }),
  },

  // The way of the traffic.
  "no way": { manifest: withAnalysis({}), refused: oneStrategy },
  "iterations beside a step": { manifest: withAnalysis({ iterations: 5, stepWeight: 10 }), refused: oneStrategy },
  "iterations beside weights": { manifest: withAnalysis({ iterations: 5, stepWeights: [10] }), refused: oneStrategy },
  "a step beside weights": { manifest: withAnalysis({ stepWeight: 10, stepWeights: [10] }), refused: oneStrategy },
  "no analysis": {
    manifest: canary({ analysis: undefined }),
    refused: { path: "spec.analysis", words: "write how a revision is judged", serverWords: required },
  },
  "no interval": {
    manifest: canary({ analysis: { threshold: 5, stepWeight: 10 } }),
    refused: { path: "spec.analysis.interval", words: "write minutes or seconds", serverWords: required },
  },
  "no threshold": {
    manifest: canary({ analysis: { interval: "1m", stepWeight: 10 } }),
    refused: { path: "spec.analysis.threshold", words: "write how many failed checks", serverWords: required },
  },
  "an interval in hours": {
    manifest: withAnalysis({ interval: "1h", stepWeight: 10 }),
    refused: {
      path: "spec.analysis.interval",
      words: "write minutes or seconds",
      serverWords: "should match '^[0-9]+",
    },
  },
  "a step of 0": {
    manifest: withAnalysis({ stepWeight: 0 }),
    refused: {
      path: "spec.analysis.stepWeight",
      words: "write a whole number from 1 to 100",
      serverWords: `${tooFew} 1`,
    },
  },
  "a step above 100": {
    manifest: withAnalysis({ stepWeight: 101 }),
    refused: { path: "spec.analysis.stepWeight", words: "from 1 to 100", serverWords: `${tooMany} 100` },
  },
  "no iterations": {
    manifest: withAnalysis({ iterations: 0 }),
    refused: { path: "spec.analysis.iterations", words: "at least 1", serverWords: `${tooFew} 1` },
  },
  "weights that fall": { manifest: withAnalysis({ stepWeights: [10, 50, 20] }), refused: rising },
  "a weight twice": { manifest: withAnalysis({ stepWeights: [10, 10, 20] }), refused: rising },
  "a weight above 100": {
    manifest: withAnalysis({ stepWeights: [10, 101] }),
    refused: { path: "spec.analysis.stepWeights[1]", words: "from 1 to 100", serverWords: `${tooMany} 100` },
  },
  "a weight of 0": {
    manifest: withAnalysis({ stepWeights: [0, 10] }),
    refused: { path: "spec.analysis.stepWeights[0]", words: "from 1 to 100", serverWords: `${tooFew} 1` },
  },
  "no weights": {
    manifest: withAnalysis({ stepWeights: [] }),
    refused: { path: "spec.analysis.stepWeights", words: "from 1 to 100 weights", serverWords: "at least 1 items" },
  },
  "a maximum of 0": {
    manifest: withAnalysis({ stepWeight: 10, maxWeight: 0 }),
    refused: { path: "spec.analysis.maxWeight", words: "from 1 to 100", serverWords: `${tooFew} 1` },
  },
  "a maximum above 100": {
    manifest: withAnalysis({ stepWeight: 10, maxWeight: 101 }),
    refused: { path: "spec.analysis.maxWeight", words: "from 1 to 100", serverWords: `${tooMany} 100` },
  },
  "a threshold in text": {
    manifest: withAnalysis({ threshold: "5", stepWeight: 10 }),
    refused: { path: "spec.analysis.threshold", words: "not a whole number", serverWords: "must be of type integer" },
  },

  // Combinations that cannot work.
  "copied requests and session affinity": {
    manifest: withAnalysis({ iterations: 5, mirror: true, sessionAffinity: { cookieName: "a" } }),
    refused: { path: "spec.analysis.sessionAffinity", words: "leave mirror or sessionAffinity out" },
  },
  "matched requests and session affinity": {
    manifest: withAnalysis({
      iterations: 5,
      match: [{ headers: { "x-canary": { exact: "yes" } } }],
      sessionAffinity: { cookieName: "a" },
    }),
    refused: { path: "spec.analysis.sessionAffinity", words: "leave match or sessionAffinity out" },
  },
  "one cookie for both revisions": {
    manifest: withAnalysis({ stepWeight: 10, sessionAffinity: { cookieName: "a", primaryCookieName: "a" } }),
    refused: { path: "spec.analysis.sessionAffinity.primaryCookieName", words: "write another primaryCookieName" },
  },
  "session affinity without a cookie": {
    manifest: withAnalysis({ stepWeight: 10, sessionAffinity: {} }),
    refused: {
      path: "spec.analysis.sessionAffinity.cookieName",
      words: "write the name of a cookie",
      serverWords: required,
    },
  },
  "copied requests before weights": {
    manifest: withAnalysis({ stepWeight: 10, mirror: true }, { service: { port: 80, gatewayRefs: [gateway] } }),
    refused: { path: "spec.analysis", words: "write iterations instead of the weights" },
  },
  "copied requests before weights, with Istio": {
    manifest: withAnalysis({ stepWeight: 10, mirror: true, mirrorWeight: 50 }, { provider: "istio" }),
  },
  "copied requests before weights, where they have no effect": {
    manifest: withAnalysis({ stepWeights: [10, 20], mirror: true }, { provider: "kubernetes" }),
  },
  "a gateway provider without a gateway": {
    manifest: canary({ provider: "gatewayapi:v1" }),
    refused: { path: "spec.service", words: "write service.gatewayRefs" },
  },
  "a gateway provider with an empty list": {
    manifest: withService({ gatewayRefs: [] }, { provider: "gatewayapi" }),
    refused: { path: "spec.service", words: "write service.gatewayRefs" },
  },
  "no service": {
    manifest: canary({ service: undefined }),
    refused: { path: "spec.service", words: "write service: {port: PORT}" },
  },
  "a service without a port": {
    manifest: canary({ service: {} }),
    refused: { path: "spec.service.port", words: "write a port", serverWords: required },
  },
  "a name too long for NAME-primary": {
    manifest: withTarget({ name: "a".repeat(56) }),
    refused: { path: "spec.service", words: "at most 55 characters" },
  },
  "a long name, and a shorter one for the Services": {
    manifest: withTarget({ name: `a.${"b".repeat(200)}` }, { service: { name: "a".repeat(55), port: 80 } }),
  },
  "a name that is none of a Service": {
    manifest: withTarget({ name: "web.v1" }),
    refused: { path: "spec.service", words: "no '.'" },
  },
  "a Knative Service with another provider": {
    manifest: withTarget({ apiVersion: "serving.knative.dev/v1", kind: "Service" }),
    refused: { path: "spec.provider", words: "needs provider: knative" },
  },
  "knative without a Knative Service": {
    manifest: canary({ provider: "knative" }),
    refused: { path: "spec.provider", words: "needs provider: knative" },
  },
  "a delegated route with hosts": {
    manifest: withService({ delegation: true, hosts: ["a"] }, { provider: "istio" }),
    refused: { path: "spec.service", words: "neither hosts nor gateways" },
  },
  "OAM without the Service that clients use": {
    manifest: oam({ service: { port: 80, gatewayRefs: [gateway] } }),
    refused: { path: "spec.service", words: "write service.name" },
  },
  "OAM without analysis": {
    manifest: oam({ skipAnalysis: true }),
    refused: { path: "spec.skipAnalysis", words: "leave skipAnalysis out" },
  },
  "OAM that is reverted": {
    manifest: oam({ revertOnDeletion: true }),
    refused: { path: "spec.revertOnDeletion", words: "leave revertOnDeletion out" },
  },
  "a plan of OAM beside steps of the analysis": {
    manifest: oam({ rolloutPlan: {} }),
    refused: { path: "spec.analysis", words: "with rolloutPlan none of them" },
  },
  "a plan of OAM with another provider": {
    manifest: canary({ analysis: calm, rolloutPlan: {} }),
    refused: { path: "spec.rolloutPlan", words: "write provider: oam" },
  },
  "a plan of OAM beside a number of pods": {
    manifest: planned({}, { canaryReplicas: 1 }),
    refused: { path: "spec.canaryReplicas", words: "leave canaryReplicas or rolloutPlan out" },
  },
  "a plan of OAM with too many metrics": {
    manifest: planned(
      { canaryMetric: [{ name: "request-duration" }] },
      { analysis: { ...calm, metrics: metricsOf(32) } },
    ),
    refused: { path: "spec.rolloutPlan", words: "have more together" },
  },
  "a plan of OAM with a metric that nothing measures": {
    manifest: planned({ canaryMetric: [{ name: "errors" }] }),
    refused: { path: "spec.rolloutPlan.canaryMetric[0].templateRef", words: "are built in: write templateRef" },
  },
  "a plan of OAM with two numbers of batches": {
    manifest: planned({ numBatches: 3, rolloutBatches: [{ replicas: 1 }, { replicas: 1 }] }),
    refused: { path: "spec.rolloutPlan.numBatches", words: "leave one of them out" },
  },
  "a plan of OAM that ends behind its last batch": {
    manifest: planned({ numBatches: 2, batchPartition: 2 }),
    refused: { path: "spec.rolloutPlan.batchPartition", words: "there is no such batch" },
  },
  "a batch with hooks of its own": {
    manifest: planned({ rolloutBatches: [{ replicas: 1, batchRolloutWebhooks: [{ name: "a" }] }] }),
    refused: { path: "spec.rolloutPlan.rolloutBatches[0].batchRolloutWebhooks", words: "rolloutPlan.rolloutWebhooks" },
  },
  "a batch with metrics of its own": {
    manifest: planned({ rolloutBatches: [{ replicas: 1, canaryMetric: [{ name: "a" }] }] }),
    refused: { path: "spec.rolloutPlan.rolloutBatches[0].canaryMetric", words: "rolloutPlan.canaryMetric" },
  },
  "OAM with a set": {
    manifest: oam({ targetRef: { apiVersion: "apps/v1", kind: "StatefulSet", name: "web-v1" } }),
    refused: { path: "spec.targetRef.kind", words: "a workload of a component" },
  },
  "a workload of OAM with another provider": {
    manifest: withTarget({ apiVersion: "standard.oam.dev/v1alpha1", kind: "PodSpecWorkload" }),
    refused: { path: "spec.targetRef.kind", words: "needs provider: oam" },
  },
  "a source with another provider": {
    manifest: canary({ sourceRef: { apiVersion: "apps/v1", kind: "Deployment", name: "web-v1" } }),
    refused: { path: "spec.sourceRef", words: "leave sourceRef out" },
  },
  "a size for a DaemonSet": {
    manifest: withTarget({ kind: "DaemonSet" }, { canaryReplicas: 2 }),
    refused: { path: "spec.canaryReplicas", words: "leave canaryReplicas out" },
  },

  // Words.
  "an unknown provider": {
    manifest: canary({ provider: "istoi" }),
    refused: { path: "spec.provider", words: "did you mean istio?", serverWords: unsupported },
  },
  "a target that has no revisions": {
    manifest: withTarget({ kind: "Job" }),
    refused: { path: "spec.targetRef.kind", words: "StatefulSet", serverWords: unsupported },
  },
  "a target without a version": {
    manifest: canary({ targetRef: { kind: "Deployment", name: "web" } }),
    refused: { path: "spec.targetRef.apiVersion", words: "such as apps/v1", serverWords: required },
  },
  "a target of another namespace": {
    manifest: withTarget({ name: "other/web" }),
    refused: { path: "spec.targetRef.name", words: "write the name", serverWords: "should match '^[a-z0-9]" },
  },
  "an autoscaler of another kind": {
    manifest: canary({ autoscalerRef: { apiVersion: "v1", kind: "Scaler", name: "a" } }),
    refused: { path: "spec.autoscalerRef.kind", words: "ScaledObject", serverWords: unsupported },
  },
  "an approval twice": {
    manifest: canary({ requireApproval: ["Rollout", "Rollout"] }),
    refused: { path: "spec.requireApproval[1]", words: "repeats", serverWords: "Duplicate value" },
  },
  "a metrics server without a scheme": {
    manifest: canary({ metricsServer: "prometheus:9090" }),
    refused: { path: "spec.metricsServer", words: "begins with http://", serverWords: "should match '^(https" },
  },

  // Metrics.
  "a metric that is not built in": {
    manifest: withMetric({ thresholdRange: { max: 1 } }),
    refused: { path: "spec.analysis.metrics[0].templateRef", words: "write templateRef" },
  },
  "a metric with an empty query": {
    manifest: withMetric({ query: "" }),
    refused: { path: "spec.analysis.metrics[0].templateRef", words: "write templateRef" },
  },
  "a metric with a query": { manifest: withMetric({ query: "sum(rate(x[1m]))", threshold: 5 }) },
  "a metric by template": { manifest: withMetric({ templateRef: { name: "errors" }, thresholdRange: { max: 1 } }) },
  "a range without values": {
    manifest: withMetric({ query: "x", thresholdRange: { min: 2, max: 1 } }),
    refused: { path: "spec.analysis.metrics[0].thresholdRange", words: "write a min that is not above max" },
  },
  "a quotient without a range": {
    manifest: withMetric({ query: "x", relativeTo: "Source", threshold: 1 }),
    refused: { path: "spec.analysis.metrics[0].thresholdRange", words: "write thresholdRange" },
  },
  "a metric without a name": {
    manifest: withAnalysis({ stepWeight: 10, metrics: [{ query: "x" }] }),
    refused: { path: "spec.analysis.metrics[0].name", words: "write a name", serverWords: required },
  },

  // Hooks and alerts.
  "a hook without an address": {
    manifest: withAnalysis({ stepWeight: 10, webhooks: [{ name: "a" }] }),
    refused: { path: "spec.analysis.webhooks[0].url", words: "begins with http://", serverWords: required },
  },
  "a hook to a file": {
    manifest: withWebhook({ url: "file:///etc/passwd" }),
    refused: {
      path: "spec.analysis.webhooks[0].url",
      words: "begins with http://",
      serverWords: "should match '^https",
    },
  },
  "a hook of an unknown type": {
    manifest: withWebhook({ type: "pre-rolout" }),
    refused: { path: "spec.analysis.webhooks[0].type", words: "did you mean pre-rollout?", serverWords: unsupported },
  },
  "a hook's Secret of another namespace": {
    manifest: withWebhook({ secretRef: { name: "other/hooks" } }),
    refused: {
      path: "spec.analysis.webhooks[0].secretRef.name",
      words: "a Secret in the same namespace",
      serverWords: "should match '^[a-z0-9]",
    },
  },
  "a deadline of a hook that is no gate": {
    manifest: withWebhook({ type: "pre-rollout", deadline: "10m" }),
    refused: { path: "spec.analysis.webhooks[0].deadline", words: "leave deadline out" },
  },
  "a deadline that is none": {
    manifest: withWebhook({ type: "confirm-rollout", deadline: "soon" }),
    refused: {
      path: "spec.analysis.webhooks[0].deadline",
      words: "such as 30s, 10m or 24h",
      serverWords: "should match '^([0-9]",
    },
  },
  "an alert without a provider": {
    manifest: withAnalysis({ stepWeight: 10, alerts: [{ name: "a" }] }),
    refused: { path: "spec.analysis.alerts[0].providerRef", words: "is missing", serverWords: required },
  },

  // Requests.
  "a header by two texts": {
    manifest: withAnalysis({ iterations: 1, match: [{ headers: { "x-canary": { exact: "a", prefix: "a" } } }] }),
    refused: {
      path: "spec.analysis.match[0].headers[x-canary]",
      words: "one of exact, prefix, suffix and regex",
    },
  },
  "a header by nothing": {
    manifest: withAnalysis({ iterations: 1, match: [{ headers: { "x-canary": {} } }] }),
    refused: {
      path: "spec.analysis.match[0].headers[x-canary]",
      words: "one of exact, prefix, suffix and regex",
    },
  },
  "a path by two texts": {
    manifest: withService({ match: [{ uri: { prefix: "/", regex: ".*" } }] }),
    refused: { path: "spec.service.match[0].uri", words: "one of exact, prefix and regex" },
  },
  "a path by nothing, as Flagger takes it": { manifest: withService({ match: [{ uri: {} }] }) },
  "copies to a Service without a port": {
    manifest: withService({ mirror: [{ backendRef: { name: "shadow" } }] }),
    refused: { path: "spec.service.mirror[0].backendRef.port", words: "write port" },
  },
  "copies to another kind": {
    manifest: withService({ mirror: [{ backendRef: { group: "example.com", kind: "Sink", name: "shadow" } }] }),
  },
  "a label that is none": {
    manifest: withService({ apex: { labels: { "my team": "web" } } }),
    refused: { path: "spec.service.apex.labels", words: "a label key is NAME or PREFIX/NAME" },
  },
  "a port that is none": {
    manifest: withService({ targetPort: 70_000 }),
    refused: {
      path: "spec.service.targetPort",
      words: "write a port from 1 to 65535",
      serverWords: `${tooMany} 65535`,
    },
  },
}

const template = (spec: Fields) => ({
  apiVersion,
  kind: "MetricTemplate",
  metadata: { name: "errors", namespace: "default" },
  spec: { provider: { type: "prometheus", address: "http://prometheus.monitoring:9090" }, query: "vector(1)", ...spec },
})

export const metricTemplateCases: Record<string, Case> = {
  "the smallest manifest": { manifest: template({ provider: { type: "prometheus" } }) },
  "every field": {
    manifest: template({
      provider: {
        type: "cloudwatch",
        address: "https://example.com",
        headers: { "X-Scope": ["a", "b"] },
        secretRef: { name: "credentials" },
        region: "eu-west-1",
        insecureSkipVerify: true,
      },
      query: 'sum(rate(errors{pod=~"{{ target }}-.*"}[{{ interval }}]))',
    }),
  },
  "a type that has no implementation here": { manifest: template({ provider: { type: "keptn" } }) },
  "an unknown type": {
    manifest: template({ provider: { type: "prometeus" } }),
    refused: { path: "spec.provider.type", words: "did you mean prometheus?", serverWords: unsupported },
  },
  "no type": {
    manifest: template({ provider: {} }),
    refused: { path: "spec.provider.type", words: "such as type: prometheus", serverWords: required },
  },
  "no query": {
    manifest: template({ query: undefined }),
    refused: { path: "spec.query", words: "write a query", serverWords: required },
  },
  "an empty query": {
    manifest: template({ query: "" }),
    refused: { path: "spec.query", words: "write a query", serverWords: "at least 1 chars long" },
  },
  "a query that is too long": {
    manifest: template({ query: "x".repeat(32_769) }),
    refused: { path: "spec.query", words: "at most 32768", serverWords: "may not be more than 32768" },
  },
  "an address without a scheme": {
    manifest: template({ provider: { type: "prometheus", address: "prometheus:9090" } }),
    refused: { path: "spec.provider.address", words: "begins with http://", serverWords: "should match '^(https" },
  },
  "a Secret of another namespace": {
    manifest: template({ provider: { type: "datadog", secretRef: { name: "other/a" } } }),
    refused: {
      path: "spec.provider.secretRef.name",
      words: "a Secret in the same namespace",
      serverWords: "should match '^[a-z0-9]",
    },
  },
}

const provider = (spec: Fields) => ({
  apiVersion,
  kind: "AlertProvider",
  metadata: { name: "on-call", namespace: "default" },
  spec: { type: "slack", ...spec },
})
const eitherOr = { path: "spec", words: "either address, or secretRef" }

export const alertProviderCases: Record<string, Case> = {
  "the smallest manifest": { manifest: provider({ address: "https://hooks.example.com/a" }) },
  "an address in a Secret": { manifest: provider({ secretRef: { name: "slack" } }) },
  "every field": {
    manifest: provider({
      type: "gchat",
      channel: "on-call",
      username: "canary",
      secretRef: { name: "chat" },
      proxy: "socks5://proxy.example.com:1080",
    }),
  },
  "neither address nor Secret": { manifest: provider({}), refused: eitherOr },
  "both address and Secret": {
    manifest: provider({ address: "https://hooks.example.com/a", secretRef: { name: "slack" } }),
    refused: eitherOr,
  },
  "an unknown type": {
    manifest: provider({ type: "slak", secretRef: { name: "slack" } }),
    refused: { path: "spec.type", words: "did you mean slack?", serverWords: unsupported },
  },
  "an address without a scheme": {
    manifest: provider({ address: "hooks.example.com" }),
    refused: { path: "spec.address", words: "begins with http://", serverWords: "should match '^https" },
  },
  "a proxy of another scheme": {
    manifest: provider({ address: "https://hooks.example.com/a", proxy: "ftp://proxy" }),
    refused: { path: "spec.proxy", words: "socks5://", serverWords: "should match '^((https" },
  },
  "a Secret of another namespace": {
    manifest: provider({ secretRef: { name: "other/slack" } }),
    refused: {
      path: "spec.secretRef.name",
      words: "a Secret in the same namespace",
      serverWords: "should match '^[a-z0-9]",
    },
  },
}
