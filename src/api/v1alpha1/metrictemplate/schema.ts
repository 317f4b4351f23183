import { z } from "zod"
import { ageColumn, readyColumn, reasonColumn } from "../../columns.ts"
import { listAtomic, statusBase } from "../../fields.ts"
import { defineKind, type ObjectOf } from "../../kind.ts"
import { namesOf } from "../../names.ts"
import { optionalHttpAddress, secretRef } from "../delivery-fields.ts"
import type { ConditionType, Reason } from "./reasons.ts"

/** Flagger's, and `web` for anything that answers with JSON. One that has no implementation here is refused by the controller. */
const types = [
  "prometheus", "influxdb", "datadog", "externalmetrics", "stackdriver", "cloudwatch", "newrelic", "graphite",
  "dynatrace", "keptn", "splunk", "web",
] as const // biome-ignore format: a list of words

const provider = z.object({
  type: z
    .enum(types)
    .meta({ hint: "write which metric service answers, such as type: prometheus" })
    .describe("Which metric service."),
  address: optionalHttpAddress().describe("Where it is.").optional(),
  headers: z
    .record(z.string(), z.array(z.string().max(4096)).max(16).meta(listAtomic))
    .meta({ maxProperties: 32 })
    .describe("Headers of the request, each with its values.")
    .optional(),
  secretRef: secretRef()
    .describe(
      "A Secret of the same namespace with the credentials, under the keys of the metric service (`username`, `password`, `token` …). Its author needs the right to read it.",
    )
    .optional(),
  method: z
    .enum(["GET", "POST"])
    .describe("For web: GET sends the query as parameters of the address, POST as the body. Without it: GET.")
    .optional(),
  value: z
    .string()
    .min(1)
    .max(1024)
    .meta({ hint: "write where the number stands in the answer, such as value: response.value" })
    .describe("For web: a CEL expression that gives the number; `response` is the answer, and its numbers are doubles.")
    .optional(),
  region: z.string().max(63).describe("The region, for cloudwatch.").optional(),
  insecureSkipVerify: z
    .boolean()
    .describe("Do not check the certificate. Only for hosts that an administrator allows.")
    .default(false),
})

const spec = z.object({
  provider: provider
    .meta({ hint: "write the metric service, such as provider: {type: prometheus, address: http://prometheus:9090}" })
    .describe("Where the query is asked."),
  query: z
    .string()
    .min(1)
    .max(32_768)
    .meta({ hint: "write a query that gives one number" })
    .describe(
      "The query. {{ name }}, {{ namespace }}, {{ target }}, {{ source }}, {{ revision }}, {{ service }}, {{ ingress }}, {{ route }}, {{ tier }}, {{ interval }} and {{ variables.NAME }} are replaced; a variable that is not given is an error.",
    ),
})

const status = z.object({
  ...statusBase<ConditionType, Reason>({ conditions: 2, message: 512 }),
})

export const MetricTemplate = defineKind({
  ...namesOf("MetricTemplate"),
  categories: ["all"],
  description: "A MetricTemplate is a query that Canaries measure with.",
  printerColumns: [
    { name: "Provider", type: "string", jsonPath: ".spec.provider.type" },
    readyColumn,
    reasonColumn,
    ageColumn,
  ],
  spec,
  status,
})

export type MetricTemplate = ObjectOf<typeof MetricTemplate>
export type MetricTemplateSpec = MetricTemplate["spec"]
export type MetricTemplateStatus = NonNullable<MetricTemplate["status"]>
