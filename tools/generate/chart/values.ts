import { stringify } from "yaml"
import { z } from "zod"
import { usualLimits } from "#agent/index.ts"
import { socketPath, usualSocket } from "#cli/manifests/agent.ts"
import { foreignNames } from "#cli/manifests/rbac.ts"
import manifest from "../../../package.json" with { type: "json" }
import { code, table } from "../markdown.ts"

const foreignKind = z.strictObject({
  plural: z.string().max(63).regex(foreignNames.plural),
  group: z
    .string()
    .max(253)
    .regex(foreignNames.group)
    // A role for a group of Kubernetes itself would let the controllers read, and change where granted, what is no target.
    .meta({ not: { anyOf: [{ enum: foreignNames.groupsOfOthers }, { pattern: foreignNames.version.source }] } }),
})

const count = (initially: number) => z.int().min(1).max(9999).default(initially)
const enabled = (initially: boolean) => ({ enabled: z.boolean().default(initially) })

/** What may be set at `helm install`, declared once: values.yaml, its comments and values.schema.json come from here. */
export const chartValues = (resources: { controller: object; agent: object }) =>
  z.strictObject({
    image: z
      .string()
      .min(1)
      .default(`autoimagemanager/aim:${manifest.version}`)
      .describe("The image of aim: what npm run image -- --push has pushed. A digest is better than a tag."),
    replicas: z
      .int()
      .min(0)
      .max(5)
      .default(1)
      .describe("One replica acts. With 2 the second one stands by, and acts as soon as the first one ends."),
    for: z
      .array(foreignKind)
      .default([])
      .describe(
        "Kinds of your own that a ServiceImage may name, as --for of aim manifests: {plural: dicoms, group: services.example.com}",
      ),
    resources: z
      .looseObject({})
      .default(resources.controller as Record<string, unknown>)
      .describe(
        "What the controllers ask for and may use. Memory grows with the fleet: docs/benchmarks.md has numbers.",
      ),
    allowEgress: z
      .array(z.string().max(400))
      .default([])
      .describe(
        "Hosts on any address that metrics, hooks and alerts of Canaries may reach, as --allow-egress of aim controller: shop=prometheus.monitoring.svc:9090",
      ),
    sharedNamespaces: z
      .array(z.string().max(63))
      .default([])
      .describe("Namespaces whose MetricTemplates and AlertProviders Canaries of all others may use."),
    allowProviders: z
      .array(z.string().max(63))
      .default([])
      .describe(
        "Providers of Canaries that are off otherwise, as --allow-provider of aim controller: smi:v1alpha2 or istio",
      ),
    metricsServer: z
      .string()
      .max(2048)
      .default("")
      .describe("The Prometheus of Canaries that name none, such as http://prometheus.monitoring.svc:9090"),
    agent: z
      .strictObject({
        ...enabled(false),
        criSocket: z
          .string()
          .max(1024)
          .regex(socketPath.pattern)
          .meta({ not: { pattern: socketPath.not.source } })
          .default(usualSocket),
        stopsPerMinute: count(usualLimits.stopsPerMinute),
        pullsPerNode: count(usualLimits.pullsPerNode),
        imageGcHighThreshold: z.int().min(1).max(100).default(usualLimits.imageGcHighThresholdPercent),
        resources: z.looseObject({}).default(resources.agent as Record<string, unknown>),
      })
      .prefault({})
      .describe(
        "An agent on every node, which restarts containers and pulls images, in the namespace aim-agents: as aim manifests agent, with the options of aim agent.",
      ),
    crds: z
      .strictObject({ install: z.boolean().default(true) })
      .prefault({})
      .describe(
        "The CustomResourceDefinitions come and are upgraded with the chart, and stay when it is uninstalled. With false: aim manifests crds.",
      ),
    networkPolicy: z
      .strictObject(enabled(true))
      .prefault({})
      .describe("Only namespaces with the label metrics=enabled reach the port of the metrics."),
    podDisruptionBudget: z
      .strictObject(enabled(false))
      .prefault({})
      .describe("A drain takes one pod at a time. Of use with 2 replicas."),
    serviceMonitor: z
      .strictObject({
        ...enabled(false),
        interval: z
          .string()
          .regex(/^([0-9]+(ms|s|m|h))+$/)
          .default("15s"),
        labels: z.record(z.string(), z.string()).default({}),
      })
      .prefault({})
      .describe(
        "For the Prometheus operator, which must be there: a Service and a ServiceMonitor, with the labels that your Prometheus selects by.",
      ),
  })

type Values = ReturnType<typeof chartValues>

/** Every value with its default and the sentence that explains it. */
export const valuesFile = (values: Values): string => {
  const defaults: Record<string, unknown> = values.parse({})
  return Object.entries(values.shape)
    .map(([name, { description }]) => `# ${description}\n${stringify({ [name]: defaults[name] })}`)
    .join("")
}

/** For the page that describes them: nested values by their path, and the sentence once. */
export const valuesTable = (values: Values): string => {
  const defaults: Record<string, unknown> = values.parse({})
  const rows = Object.entries(values.shape).flatMap(([name, { description = "" }]) =>
    leaves(name, defaults[name]).map(([path, value], i) => [code(path), code(value), i === 0 ? description : ""]),
  )
  return table(["Value", "Default", "Meaning"], rows)
}

const isMap = (value: unknown): value is object =>
  value !== null && typeof value === "object" && !Array.isArray(value) && Object.keys(value).length > 0

const leaves = (path: string, value: unknown): [string, string][] =>
  isMap(value)
    ? Object.entries(value).flatMap(([name, each]) => leaves(`${path}.${name}`, each))
    : [[path, typeof value === "string" ? value : JSON.stringify(value)]]

/** Helm holds what a user sets against it: a misspelt value is an error and not ignored. */
export const valuesSchema = (values: Values): string => {
  const schema = z.toJSONSchema(values, { target: "draft-7", io: "input" })
  // Charts that contain this one, and Helm itself, add these.
  const properties = { ...schema.properties, global: { type: "object" } }
  return `${JSON.stringify({ ...schema, properties }, null, 2)}\n`
}
