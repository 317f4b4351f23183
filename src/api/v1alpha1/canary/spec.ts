import { z } from "zod"
import { count, listSet, rules } from "../../fields.ts"
import { objectName, optionalHttpAddress, texts } from "../delivery-fields.ts"
import { analysis } from "./analysis.ts"
import { service } from "./service.ts"

/** Flagger's, and `gatewayapi` for `gatewayapi:v1`. One that has no router here is refused by the controller. */
const providers = [
  "apisix", "appmesh", "appmesh:v1beta2", "contour", "gatewayapi", "gatewayapi:v1", "gatewayapi:v1beta1", "gloo",
  "istio", "knative", "kubernetes", "kuma", "linkerd", "nginx", "osm", "skipper", "smi:v1alpha1", "smi:v1alpha2",
  "smi:v1alpha3", "traefik",
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
        "What divides the requests. Without it: gatewayapi:v1 where service.gatewayRefs is given, otherwise kubernetes.",
      )
      .optional(),
    metricsServer: optionalHttpAddress()
      .describe("The Prometheus that built-in metrics and inline queries ask.")
      .optional(),
    targetRef: z
      .object(refOf(["DaemonSet", "Deployment", "Service", "StatefulSet"]))
      .describe("The workload whose changes are proven, or a Service that is only routed to."),
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
        rule: "!has(self.canaryReplicas) || self.targetRef.kind in ['Deployment', 'StatefulSet']",
        message: "a DaemonSet has one pod on each node, and a Service has none: leave canaryReplicas out",
        fieldPath: ".canaryReplicas",
      },
    ),
  )
