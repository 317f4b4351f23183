import { z } from "zod"
import { foreign, labels, listAtomic, rules } from "../../fields.ts"
import { texts } from "../delivery-fields.ts"

/** What a Canary says about its Services and routes. */

const maxMatches = 32
const maxHosts = 64

/** An address, a path or a header: what routers compare and write. */
const routeText = () => z.string().max(1024)

/** How long a router waits, as Go and the Gateway API write it; "" means "not given". */
const timeout = () =>
  z
    .string()
    .max(32)
    .regex(/^([0-9]+([.][0-9]+)?(h|m|s|ms|us|ns))*$/)
    .meta({ hint: "write a duration, such as 500ms, 15s or 1m" })

const port = () => z.int().min(1).max(65_535).meta({ format: "int32", hint: "write a port from 1 to 65535" })

const matchFields = {
  exact: routeText().describe("The text is equal to this.").optional(),
  prefix: routeText().describe("The text begins with this.").optional(),
  regex: routeText().describe("The text fits this pattern (RE2).").optional(),
}

const textMatch = () =>
  z.object(matchFields).meta(
    rules({
      rule: "[has(self.exact), has(self.prefix), has(self.regex)].filter(each, each).size() <= 1",
      message: "write one of exact, prefix and regex",
    }),
  )

/** Of a header, Flagger also compares the end, and wants one of the four. */
const headerMatch = () =>
  z.object({ ...matchFields, suffix: routeText().describe("The text ends with this.").optional() }).meta(
    rules({
      rule: "[has(self.exact), has(self.prefix), has(self.suffix), has(self.regex)].exists_one(each, each)",
      message: "write one of exact, prefix, suffix and regex",
    }),
  )

const byName = <T extends z.ZodType>(match: T) => z.record(z.string(), match).meta({ maxProperties: 16 })

const sourceLabels = () =>
  texts({ keys: 32, characters: 63 }).describe("Labels of the pods that send the request; for Istio.").optional()

/** Which requests of a canary go to the new revision: Flagger's `analysis.match`. */
export const analysisMatch = () =>
  z
    .array(
      z.object({
        headers: byName(headerMatch())
          .describe("Headers by name; all must match. A cookie is matched by the header cookie.")
          .optional(),
        queryParams: byName(textMatch()).describe("Query parameters by name; all must match.").optional(),
        sourceLabels: sourceLabels(),
      }),
    )
    .max(maxMatches)
    .meta(listAtomic)

/** Which requests the route is for at all: Flagger's `service.match`. */
const serviceMatch = () =>
  z
    .array(
      z.object({
        name: routeText().describe("A name for this match; for Istio.").optional(),
        uri: textMatch().describe("The path.").optional(),
        scheme: textMatch().describe("The scheme, such as https; for Istio.").optional(),
        method: textMatch().describe("The method, such as GET.").optional(),
        authority: textMatch().describe("The host of the request; for Istio.").optional(),
        headers: byName(textMatch()).describe("Headers by name; all must match.").optional(),
        withoutHeaders: byName(textMatch()).describe("Headers that must not match; for Istio.").optional(),
        queryParams: byName(textMatch()).describe("Query parameters by name; all must match.").optional(),
        ignoreUriCase: z.boolean().describe("Compare the path without regard to case; for Istio.").optional(),
        port: port().describe("The port of the request; for Istio.").optional(),
        gateways: z
          .array(routeText())
          .max(32)
          .meta(listAtomic)
          .describe("Gateways that the match is for; for Istio.")
          .optional(),
        sourceLabels: sourceLabels(),
        sourceNamespace: z
          .string()
          .max(63)
          .describe("The namespace of the pods that send the request; for Istio.")
          .optional(),
      }),
    )
    .max(maxMatches)
    .meta(listAtomic)

const apiGroup = () =>
  z
    .string()
    .max(253)
    .regex(/^$|^[a-z0-9]([-a-z0-9]*[a-z0-9])?([.][a-z0-9]([-a-z0-9]*[a-z0-9])?)*$/)
    .meta({ hint: "write an API group, such as gateway.networking.k8s.io" })
const kindName = () =>
  z
    .string()
    .min(1)
    .max(63)
    .regex(/^[a-zA-Z]([-a-zA-Z0-9]*[a-zA-Z0-9])?$/)
    .meta({ hint: "write a kind, such as Gateway" })
const namespaceName = () =>
  z
    .string()
    .min(1)
    .max(63)
    .regex(/^[a-z0-9]([-a-z0-9]*[a-z0-9])?$/)
    .meta({ hint: "write the name of a namespace" })
const referredName = () => z.string().min(1).max(253)

/** A Gateway, or a Service where a mesh routes. */
const gatewayRef = z.object({
  group: apiGroup().describe("The API group.").default("gateway.networking.k8s.io"),
  kind: kindName().describe("Gateway, or Service where a mesh routes.").default("Gateway"),
  name: referredName().describe("The name."),
  namespace: namespaceName().describe("The namespace. Without it: the namespace of the Canary.").optional(),
  sectionName: z
    .string()
    .min(1)
    .max(253)
    .regex(/^[a-z0-9]([-a-z0-9]*[a-z0-9])?([.][a-z0-9]([-a-z0-9]*[a-z0-9])?)*$/)
    .meta({ hint: "write the name of a listener" })
    .describe("One listener of it.")
    .optional(),
  port: port().describe("One port of it.").optional(),
})

const mirror = z.object({
  backendRef: z
    .object({
      group: apiGroup().describe("The API group.").default(""),
      kind: kindName().describe("The kind.").default("Service"),
      name: referredName().describe("The name."),
      namespace: namespaceName().describe("The namespace. Without it: the namespace of the Canary.").optional(),
      port: port().describe("The port.").optional(),
    })
    .meta(
      rules({
        rule: "self.group != '' || self.kind != 'Service' || has(self.port)",
        message: "requests are sent to a port of a Service: write port",
        fieldPath: ".port",
      }),
    )
    .describe("Where the copies go."),
})

const headerChanges = () =>
  z.object({
    add: texts({ keys: 32, characters: 4096 }).describe("Values that are added, by header.").optional(),
    set: texts({ keys: 32, characters: 4096 }).describe("Values that replace what is there, by header.").optional(),
    remove: z.array(routeText()).max(32).meta(listAtomic).describe("Headers that are removed.").optional(),
  })

const corsTexts = (what: string) => z.array(routeText()).max(64).meta(listAtomic).describe(what).optional()

const corsPolicy = z.object({
  allowOrigin: corsTexts("Origins, by name. Deprecated: allowOrigins."),
  allowOrigins: z
    .array(
      z.object(matchFields).meta(
        rules({
          rule: "[has(self.exact), has(self.prefix), has(self.regex)].exists_one(each, each)",
          message: "write one of exact, prefix and regex",
        }),
      ),
    )
    .max(64)
    .meta(listAtomic)
    .describe("Origins that may send requests.")
    .optional(),
  allowMethods: corsTexts("Methods that are allowed."),
  allowHeaders: corsTexts("Headers that a request may have."),
  exposeHeaders: corsTexts("Headers of the answer that a page may read."),
  maxAge: timeout().describe("How long a browser may remember the answer.").optional(),
  allowCredentials: z.boolean().describe("Whether requests may carry credentials.").optional(),
})

const metadata = (of: string) =>
  z
    .object({
      labels: labels().meta({ maxProperties: 32 }).describe(`Labels of ${of}.`).optional(),
      annotations: texts({ keys: 32, characters: 16_384 }).describe(`Annotations of ${of}.`).optional(),
    })
    .describe(`Metadata of ${of}.`)
    .optional()

const keys = (what: string) => z.array(z.string().max(317)).max(64).meta(listAtomic).describe(what).optional()

/** The Services and the route that are made or adopted. */
export const service = z.object({
  name: z
    .string()
    .max(63)
    .regex(/^([a-z0-9]([-a-z0-9]*[a-z0-9])?)?$/)
    .meta({ hint: "write the name of a Service: lower-case letters, digits and '-'" })
    .describe(
      "The Service that clients use. NAME-primary and NAME-canary are made beside it. Without it: the target's name.",
    )
    .optional(),
  port: port().describe("The port of the Services."),
  portName: z
    .string()
    .max(63)
    .regex(/^([a-z0-9]([-a-z0-9]*[a-z0-9])?)?$/)
    .meta({ hint: "write the name of a port, such as http" })
    .describe("The name of that port.")
    .default("http"),
  targetPort: z
    .union([z.int(), z.string()])
    .meta({
      "x-kubernetes-int-or-string": true,
      pattern: "^[a-z0-9]([-a-z0-9]*[a-z0-9])?$",
      minimum: 0,
      maximum: 65_535,
      maxLength: 15,
      hint: "write a port from 1 to 65535, or the name of a container's port",
    })
    .describe("The container's port, by number or name. Without it: port.")
    .optional(),
  appProtocol: z
    .string()
    .max(253)
    .describe("The protocol of the port, such as http, grpc or kubernetes.io/h2c.")
    .optional(),
  portDiscovery: z.boolean().describe("The Services get every port of the containers.").default(false),
  headless: z.boolean().describe("The Services have no address of their own.").default(false),
  trafficDistribution: z
    .enum(["PreferClose", "PreferSameZone", "PreferSameNode"])
    .describe("Which endpoints a node prefers.")
    .optional(),
  timeout: timeout().describe("How long a request may take.").optional(),
  backendTimeout: timeout().describe("How long one attempt at a pod may take; for the Gateway API.").optional(),
  hosts: z
    .array(z.string().max(253))
    .max(maxHosts)
    .meta(listAtomic)
    .describe("Host names that the route is for. Without them: any.")
    .optional(),
  gatewayRefs: z
    .array(gatewayRef)
    .max(32)
    .meta(listAtomic)
    .describe("Gateways that the HTTPRoute attaches to; needed for the Gateway API.")
    .optional(),
  gateways: z.array(routeText()).max(32).meta(listAtomic).describe("Gateways of Istio.").optional(),
  delegation: z
    .boolean()
    .describe("Istio: the route has neither hosts nor gateways, and another one refers to it.")
    .optional(),
  match: serviceMatch().describe("Requests that the route is for. Without it: all.").optional(),
  rewrite: z
    .object({
      uri: routeText().describe("The path instead of the one that came.").optional(),
      authority: routeText().describe("The host instead of the one that came.").optional(),
      type: z
        .string()
        .max(63)
        .describe("ReplacePrefixMatch: only the part that matched. Otherwise the whole path.")
        .optional(),
    })
    .describe("What is written into the request before it is sent on.")
    .optional(),
  retries: z
    .object({
      attempts: z
        .int()
        .min(0)
        .max(2_147_483_647)
        .meta({ format: "int32", hint: "write a whole number" })
        .describe("How often a request is tried again.")
        .optional(),
      perTryTimeout: timeout().describe("How long one attempt may take.").optional(),
      retryOn: routeText().describe("What is tried again, as Istio names it.").optional(),
    })
    .describe("Repeated requests; for Istio and Contour.")
    .optional(),
  headers: z
    .object({
      request: headerChanges().describe("Headers of requests.").optional(),
      response: headerChanges().describe("Headers of answers.").optional(),
    })
    .describe("Headers that the route changes.")
    .optional(),
  mirror: z
    .array(mirror)
    .max(16)
    .meta(listAtomic)
    .describe("Where else every request is sent; the answers are dropped. For the Gateway API.")
    .optional(),
  corsPolicy: corsPolicy.describe("What browsers of other origins may do.").optional(),
  trafficPolicy: foreign()
    .describe("Istio's traffic policy, kept as it is written. It has no effect: no DestinationRules are made here.")
    .optional(),
  meshName: z.string().max(253).describe("App Mesh: the mesh.").optional(),
  backends: z
    .array(routeText())
    .max(64)
    .meta(listAtomic)
    .describe("App Mesh: backends of the virtual nodes.")
    .optional(),
  apex: metadata("the Service that clients use, and of the route"),
  primary: metadata("NAME-primary"),
  canary: metadata("NAME-canary"),
  unmanagedMetadata: z
    .object({
      labels: keys("Keys of labels."),
      annotations: keys("Keys of annotations."),
    })
    .describe("Labels and annotations of the Services and the route that other writers own.")
    .optional(),
})
