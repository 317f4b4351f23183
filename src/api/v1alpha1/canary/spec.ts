import { z } from "zod"
import { count, listSet, rules } from "../../fields.ts"
import { objectName, optionalHttpAddress, texts } from "../delivery-fields.ts"
import { analysis } from "./analysis.ts"
import { maxMetrics, maxWebhooks } from "./bounds.ts"
import { rolloutPlan } from "./rollout-plan.ts"
import { service } from "./service.ts"

/** Flagger's, `gatewayapi` for `gatewayapi:v1`, and `oam`. One that has no router here is refused by the controller. */
const providers = [
  "apisix", "appmesh", "appmesh:v1beta2", "contour", "gatewayapi", "gatewayapi:v1", "gatewayapi:v1beta1", "gloo",
  "istio", "knative", "kubernetes", "kuma", "linkerd", "nginx", "oam", "osm", "skipper", "smi:v1alpha1",
  "smi:v1alpha2", "smi:v1alpha3", "traefik",
] as const // biome-ignore format: a list of words

const apiVersion = () =>
  z
    .string()
    .max(253)
    .regex(/^([a-z0-9]([-a-z0-9.]*[a-z0-9])?[/])?v[0-9][a-z0-9]*$/)
    .meta({ hint: "write VERSION or GROUP/VERSION, such as apps/v1" })

const refOf = <const Kinds extends readonly [string, ...string[]]>(kinds: Kinds) => ({
  apiVersion: apiVersion().describe("Group and version, such as apps/v1."),
  kind: z.enum(kinds).describe("The kind."),
  name: objectName().describe("The name, in the namespace of the Canary."),
})

const scalerReplicas = () =>
  z.int().min(1).max(2_147_483_647).meta({ format: "int32", hint: "write a whole number from 1" })

const autoscalerRef = z.object({
  ...refOf(["HorizontalPodAutoscaler", "ScaledObject"]),
  primaryScalerQueries: texts({ keys: 32, characters: 8192 })
    .describe("Flagger: queries of the copied ScaledObject. Nothing is copied here, so they have no effect.")
    .optional(),
  primaryScalerReplicas: z
    .object({
      minReplicas: scalerReplicas().describe("The copy's least number of pods.").optional(),
      maxReplicas: scalerReplicas().describe("The copy's greatest number of pods.").optional(),
    })
    .describe("Flagger: bounds of the copied autoscaler. Nothing is copied here, so they have no effect.")
    .optional(),
})

const isGatewayApi = "has(self.provider) && self.provider in ['gatewayapi', 'gatewayapi:v1', 'gatewayapi:v1beta1']"
const isOam = "has(self.provider) && self.provider == 'oam'"
const componentKinds = ["ContainerizedWorkload", "Deployment", "PodSpecWorkload"] as const
const isKnativeTarget =
  "self.targetRef.kind == 'Service' && self.targetRef.apiVersion.startsWith('serving.knative.dev/')"
const serviceName =
  "(has(self.service) && has(self.service.name) && self.service.name != '' ? self.service.name : self.targetRef.name)"

/** What a user writes: Flagger's fields, and those of ours that it does not have. */
export const spec = z
  .object({
    provider: z
      .enum(providers)
      .describe(
        "What divides the requests. Without it: gatewayapi:v1 where service.gatewayRefs is given, otherwise kubernetes. oam: each revision of an OAM component is a workload of its own, and an HTTPRoute divides the requests where service.gatewayRefs is given, otherwise a TrafficSplit of SMI.",
      )
      .optional(),
    metricsServer: optionalHttpAddress()
      .describe("The Prometheus that built-in metrics and inline queries ask.")
      .optional(),
    targetRef: z
      .object(refOf(["ContainerizedWorkload", "DaemonSet", "Deployment", "PodSpecWorkload", "Service", "StatefulSet"]))
      .describe(
        "The workload whose changes are proven, or a Service that is only routed to. With provider oam: the workload of the newest revision, which the OAM runtime fills in.",
      ),
    sourceRef: z
      .object(refOf(componentKinds))
      .describe(
        "With provider oam: the workload that answers now. Without it: the newest other revision of the component that has pods.",
      )
      .optional(),
    autoscalerRef: autoscalerRef.describe("The autoscaler of the target.").optional(),
    ingressRef: z
      .object(refOf(["Ingress"]))
      .describe("The Ingress of nginx or skipper.")
      .optional(),
    routeRef: z
      .object(refOf(["ApisixRoute"]))
      .describe("The route of Apisix.")
      .optional(),
    upstreamRef: z
      .object({
        ...refOf(["Upstream"]),
        namespace: z
          .string()
          .max(63)
          .regex(/^([a-z0-9]([-a-z0-9]*[a-z0-9])?)?$/)
          .meta({ hint: "write the name of a namespace" })
          .describe("Its namespace. Without it: the namespace of the Canary.")
          .optional(),
      })
      .describe("The upstream of Gloo.")
      .optional(),
    service: service.describe("The Services and the route.").optional(),
    analysis: analysis
      .meta({ hint: "write how a revision is judged, such as analysis: {interval: 1m, threshold: 5, stepWeight: 10}" })
      .describe("How a new revision is judged, and which way its traffic takes."),
    rolloutPlan: rolloutPlan
      .describe("With provider oam: the steps of a run as batches, in the words of OAM, instead of those of analysis.")
      .optional(),
    progressDeadlineSeconds: z
      .int()
      .min(1)
      .max(2_147_483_647)
      .meta({ format: "int32", hint: "write seconds, as a whole number from 1" })
      .describe("How long a run may wait without progress (pods that are not ready, no data) before it fails.")
      .default(600),
    skipAnalysis: z.boolean().describe("Promote a new revision as soon as it is ready, without checks.").default(false),
    revertOnDeletion: z
      .boolean()
      .describe("When the Canary is deleted, Services and route go back to what they were.")
      .default(false),
    suspend: z.boolean().describe("Nothing goes on, and traffic stays as it is, until this is false.").default(false),
    canaryReplicas: z
      .int()
      .min(1)
      .max(100_000)
      .meta({ format: "int32", hint: "write a whole number from 1 to 100000" })
      .describe(
        "How many pods the new revision has while it is judged. Without it: the share of the target's pods that its weight is.",
      )
      .optional(),
    scaleDownDelaySeconds: count(604_800)
      .meta({ hint: "write seconds, from 0 to 604800 (7 days)" })
      .describe("How long the old revision's pods stay after promotion; `aim rollback` then takes one write.")
      .default(0),
    onFailure: z
      .enum(["Rollback", "Freeze"])
      .describe(
        "Rollback: all requests go back to the running revision. Freeze: weight and pods stay as they are for a person to look at.",
      )
      .default("Rollback"),
    requireApproval: z
      .array(z.enum(["Rollout", "TrafficIncrease", "Promotion"]))
      .max(3)
      .meta(listSet)
      .describe("Wait for `aim approve` before a run starts, before each weight, before promotion.")
      .default([]),
  })
  .meta(
    rules(
      {
        rule: "[has(self.rolloutPlan), has(self.analysis.iterations), has(self.analysis.stepWeight), has(self.analysis.stepWeights)].exists_one(each, each)",
        message:
          "write exactly one of iterations (Blue/Green, or A/B with match), stepWeight and stepWeights (rising weights); with rolloutPlan none of them",
        fieldPath: ".analysis",
      },
      {
        rule: `(${isOam}) || !has(self.rolloutPlan)`,
        message: "batches are those of an OAM component: leave rolloutPlan out, or write provider: oam",
        fieldPath: ".rolloutPlan",
      },
      {
        rule: "!has(self.rolloutPlan) || !has(self.canaryReplicas)",
        message: "the batches say how many pods the new revision has: leave canaryReplicas or rolloutPlan out",
        fieldPath: ".canaryReplicas",
      },
      {
        rule: `!has(self.rolloutPlan) || (self.rolloutPlan.canaryMetric.size() + self.analysis.metrics.size() <= ${maxMetrics} && self.rolloutPlan.rolloutWebhooks.size() + self.analysis.webhooks.size() <= ${maxWebhooks})`,
        message: `at most ${maxMetrics} metrics and ${maxWebhooks} hooks: rolloutPlan and analysis have more together`,
        fieldPath: ".rolloutPlan",
      },
      {
        rule: "has(self.service) || self.targetRef.kind == 'Service'",
        message: "requests are divided between Services: write service: {port: PORT}",
        fieldPath: ".service",
      },
      {
        rule: `!(${isGatewayApi}) || (has(self.service) && has(self.service.gatewayRefs) && self.service.gatewayRefs.size() > 0)`,
        message:
          "an HTTPRoute attaches to a Gateway: write service.gatewayRefs: [{name: GATEWAY, namespace: NAMESPACE}]",
        fieldPath: ".service",
      },
      {
        // A prefix of 55 leaves room for "-primary" in the 63 characters of a Service's name.
        rule: `${serviceName}.size() <= 55 && !${serviceName}.contains('.')`,
        message:
          "NAME-primary and NAME-canary must be names of Services: write service.name with at most 55 characters and no '.'",
        fieldPath: ".service",
      },
      {
        rule: `(${isKnativeTarget}) == (has(self.provider) && self.provider == 'knative')`,
        message: "a Knative Service needs provider: knative, and any other target needs another provider",
        fieldPath: ".provider",
      },
      {
        rule: "!has(self.provider) || self.provider != 'istio' || !has(self.service) || !has(self.service.delegation) || !self.service.delegation || (!has(self.service.hosts) && !has(self.service.gateways))",
        message: "a route that another one refers to has neither hosts nor gateways: leave these or delegation out",
        fieldPath: ".service",
      },
      {
        // Without a mesh no request is copied, and `mirror` has no effect.
        rule: "!self.analysis.mirror || has(self.analysis.iterations) || (has(self.provider) && self.provider in ['istio', 'kubernetes'])",
        message:
          "only Istio copies requests before a weight rises: write iterations instead of the weights, or mirror: false",
        fieldPath: ".analysis",
      },
      {
        rule: "!has(self.canaryReplicas) || !(self.targetRef.kind in ['DaemonSet', 'Service'])",
        message: "a DaemonSet has one pod on each node, and a Service has none: leave canaryReplicas out",
        fieldPath: ".canaryReplicas",
      },
      {
        rule: `!(${isOam}) || self.targetRef.kind in ['${componentKinds.join("', '")}']`,
        message:
          "with provider: oam the target is a workload of a component: write a Deployment, a PodSpecWorkload or a ContainerizedWorkload",
        fieldPath: ".targetRef.kind",
      },
      {
        rule: `(${isOam}) || !(self.targetRef.kind in ['PodSpecWorkload', 'ContainerizedWorkload'])`,
        message: "a workload of OAM needs provider: oam",
        fieldPath: ".targetRef.kind",
      },
      {
        rule: `(${isOam}) || !has(self.sourceRef)`,
        message: "only with provider: oam the source is a workload of its own: leave sourceRef out",
        fieldPath: ".sourceRef",
      },
      {
        rule: `!(${isOam}) || (has(self.service) && has(self.service.name) && self.service.name != '')`,
        message:
          "with provider: oam the name of the target changes with each revision: write service.name, which clients use",
        fieldPath: ".service",
      },
      {
        rule: `!(${isOam}) || !self.skipAnalysis`,
        message: "with provider: oam a new revision is always judged: leave skipAnalysis out",
        fieldPath: ".skipAnalysis",
      },
      {
        rule: `!(${isOam}) || !self.revertOnDeletion`,
        message:
          "with provider: oam the workload before has no pods, so there is nothing to go back to: leave revertOnDeletion out",
        fieldPath: ".revertOnDeletion",
      },
    ),
  )
