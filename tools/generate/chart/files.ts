import { readFile } from "node:fs/promises"
import { stringify } from "yaml"
import { agentManifests } from "#cli/manifests/agent.ts"
import { manifests } from "#cli/manifests/all.ts"
import { controllerDeployment } from "#cli/manifests/controller.ts"
import type { Manifest } from "#cli/manifests/names.ts"
import { policies } from "#cli/manifests/policies.ts"
import { rolesFor } from "#cli/manifests/rbac.ts"
import { sources } from "#cli/manifests/sources.ts"
import { toDocuments } from "#cli/render/yaml.ts"
import manifest from "../../../package.json" with { type: "json" }
import { type GeneratedFile, inRepository, withSections } from "../file.ts"
import { agents, controllersIn, metricsService, podDisruptionBudget, serviceMonitor } from "./options.ts"
import { chartValues, valuesFile, valuesSchema, valuesTable } from "./values.ts"

/** The oldest server that the chart is for: docs/scope.md. */
const kubeVersion = ">=1.34.0-0"

/** What stands in the manifests where the chart has an expression; no manifest contains it otherwise. */
const marks = {
  namespace: "chart-release-namespace",
  image: "chart.values.image/aim",
  replicas: "chart-values-replicas",
  resources: "chart-values-resources",
  criSocket: "chart-values-cri-socket",
  stopsPerMinute: "chart-values-stops",
  pullsPerNode: "chart-values-pulls",
  imageGcHighThreshold: "chart-values-threshold",
  agentResources: "chart-values-agent-resources",
  options: "chart-values-options",
  interval: "chart-values-interval",
  labels: "chart-values-labels",
  plural: "chart-plural",
  group: "chart.group",
}

/** An argument of the container for each value that is set. */
const option = (each: string, flag: string) =>
  `{{- ${each} }}\n            - {{ printf "${flag}=%s" . | quote }}\n            {{- end }}`

/** In the order in which they are replaced: a plural or a group that stands alone may look like a number or a boolean. */
const expressions = {
  [marks.namespace]: "{{ .Release.Namespace | quote }}",
  [marks.image]: "{{ .Values.image | quote }}",
  [marks.replicas]: "{{ .Values.replicas }}",
  [marks.agentResources]: "{{ toJson .Values.agent.resources }}",
  [marks.resources]: "{{ toJson .Values.resources }}",
  [marks.criSocket]: "{{ .Values.agent.criSocket | quote }}",
  [marks.stopsPerMinute]: "{{ .Values.agent.stopsPerMinute | quote }}",
  [marks.pullsPerNode]: "{{ .Values.agent.pullsPerNode | quote }}",
  [marks.imageGcHighThreshold]: "{{ .Values.agent.imageGcHighThreshold | quote }}",
  [`- ${marks.options}`]: [
    option("range .Values.allowEgress", "--allow-egress"),
    option("range .Values.sharedNamespaces", "--shared-namespace"),
    option("range .Values.allowProviders", "--allow-provider"),
    option("with .Values.metricsServer", "--metrics-server"),
  ].join(""),
  [marks.interval]: "{{ .Values.serviceMonitor.interval | quote }}",
  [`${marks.labels}: ""`]:
    "{{- range $name, $value := .Values.serviceMonitor.labels }}\n    {{ $name }}: {{ $value | quote }}\n    {{- end }}",
  [`- ${marks.plural}`]: "- {{ .plural | quote }}",
  [`- ${marks.group}`]: "- {{ .group | quote }}",
  [marks.plural]: "{{ .plural }}",
  [marks.group]: "{{ .group }}",
}

/** The Helm chart: what `aim manifests all` prints, with what differs between clusters left open, and some options. */
export const chartFiles = async (): Promise<GeneratedFile[]> => {
  const { namespace, image } = marks
  const all = manifests({ section: "all", foreign: [], namespace, image }, sources())
  const { deployment, resources } = openDeployment()
  const agent = openAgents()
  const ofKind = (wanted: string) => all.filter(({ kind }) => kind === wanted)
  const admission = policies()
  const mutating = admission.filter(({ kind }) => kind.startsWith("Mutating"))
  const validating = admission.filter(policy => !mutating.includes(policy))
  // Helm makes the namespace.
  const elsewhere = ["CustomResourceDefinition", "NetworkPolicy", "Namespace", "Deployment"]
  const isElsewhere = ({ kind }: Manifest) => elsewhere.includes(kind) || admission.some(policy => policy.kind === kind)
  const roles = all.filter(object => !isElsewhere(object))
  const values = chartValues({ controller: resources, agent: agent.resources })
  const controllers = controllersIn(namespace)
  const monitorOf = (program: typeof controllers) => [
    metricsService(program),
    labelled(serviceMonitor(program, marks.interval)),
  ]
  const code = "src/controllers and src/cli/manifests"
  const page = inRepository("docs/install.md")
  return [
    file("Chart.yaml", "package.json", stringify(chart())),
    file("values.yaml", "tools/generate/chart/values.ts", valuesFile(values)),
    { path: inRepository("charts/aim/values.schema.json"), content: valuesSchema(values) },
    file(".helmignore", "tools/generate/chart/files.ts", ignored),
    templateFile("crds.yaml", "src/api", when(".Values.crds.install", kept(ofKind("CustomResourceDefinition")))),
    templateFile("controller.yaml", code, template([...roles, deployment]) + forEachKind()),
    templateFile("agent.yaml", "src/agent and src/cli/manifests", when(withAgents(), agent.objects)),
    templateFile(
      "network-policy.yaml",
      code,
      when(".Values.networkPolicy.enabled", ofKind("NetworkPolicy")) +
        when(withAgents(".Values.networkPolicy.enabled"), agent.networkPolicies),
    ),
    templateFile("policies.yaml", "src/policies", template(validating) + whereServed(mutating)),
    templateFile(
      "options.yaml",
      "tools/generate/chart/options.ts",
      when(".Values.podDisruptionBudget.enabled", [podDisruptionBudget(controllers)]) +
        when(".Values.serviceMonitor.enabled", monitorOf(controllers)) +
        when(withAgents(".Values.serviceMonitor.enabled"), monitorOf(agents)),
    ),
    { path: inRepository("charts/aim/templates/NOTES.txt"), content: notes },
    { path: page, content: withSections(await readFile(page, "utf8"), { values: valuesTable(values) }) },
  ]
}

const file = (path: string, source: string, content: string): GeneratedFile => ({
  path: inRepository(`charts/aim/${path}`),
  content: `# Generated from ${source} by npm run generate.\n${content}`,
})

/** The line on top is a comment of the template: where all that follows is left out, nothing at all is rendered. */
const templateFile = (name: string, source: string, content: string): GeneratedFile => ({
  path: inRepository(`charts/aim/templates/${name}`),
  content: `{{- /* Generated from ${source} by npm run generate. */ -}}\n${content}`,
})

const chart = () => ({
  apiVersion: "v2",
  name: "aim",
  description: manifest.description,
  type: "application",
  version: manifest.version,
  appVersion: manifest.version,
  kubeVersion,
})

const ignored = `# Helm installs what is in crds/ once and never upgrades it. The chart has the same in templates/crds.yaml;
# this folder is for kubectl apply -f.
crds/
`

const notes = `aim {{ .Chart.AppVersion }} is installed in {{ .Release.Namespace }}. It changes nothing yet: a namespace grants that by itself.

  aim grant NAMESPACE      # its workloads may be changed
  aim status               # every rollout, and where it stands
`

/** The Deployment with what a user may set left open, and what it has otherwise. */
function openDeployment(): { deployment: Manifest; resources: object } {
  const { namespace, image, replicas, resources } = marks
  const deployment = controllerDeployment({ namespace, image })
  const { spec } = deployment as Manifest & {
    spec: { replicas: unknown; template: { spec: { containers: { args: string[]; resources: unknown }[] } } }
  }
  const [container] = spec.template.spec.containers
  const initially = container!.resources as object
  container!.args.push(marks.options)
  spec.replicas = replicas
  container!.resources = resources
  return { deployment, resources: initially }
}

/** The agents with what a user may set left open, and the resources that they have otherwise. */
function openAgents(): { objects: Manifest[]; networkPolicies: Manifest[]; resources: object } {
  const { image, criSocket, stopsPerMinute, pullsPerNode, imageGcHighThreshold } = marks
  const limits = { stopsPerMinute, pullsPerNode, imageGcHighThresholdPercent: imageGcHighThreshold }
  const all = agentManifests({ image, criSocket, permissions: sources().agent, limits })
  const daemonSet = all.find(({ kind }) => kind === "DaemonSet") as Manifest & {
    spec: { template: { spec: { containers: { resources: unknown }[] } } }
  }
  const [container] = daemonSet.spec.template.spec.containers
  const resources = container!.resources as object
  container!.resources = marks.agentResources
  const isPolicy = ({ kind }: Manifest) => kind === "NetworkPolicy"
  return { objects: all.filter(object => !isPolicy(object)), networkPolicies: all.filter(isPolicy), resources }
}

/** The condition of everything about the agents. */
const withAgents = (also?: string) => (also ? `and .Values.agent.enabled ${also}` : ".Values.agent.enabled")

/** Uninstalling leaves the definitions, and with them every ServiceImage and what its rollout has come to. */
const kept = (definitions: readonly Manifest[]): Manifest[] =>
  definitions.map(definition => ({
    ...definition,
    metadata: { ...definition.metadata, annotations: { "helm.sh/resource-policy": "keep" } },
  }))

const labelled = (object: Manifest): Manifest => {
  const labels = { ...(object.metadata.labels as object), [marks.labels]: "" }
  return { ...object, metadata: { ...object.metadata, labels } }
}

function template(documents: readonly Manifest[]): string {
  // Helm takes two braces for a template, also in the description of a field: an expression gives them back.
  const text = toDocuments(documents).replaceAll("{{", '{{ "{{" }}')
  return Object.entries(expressions).reduce((text, [name, expression]) => text.replaceAll(name, expression), text)
}

const when = (condition: string, documents: readonly Manifest[]) =>
  documents.length === 0 ? "" : `{{- if ${condition} }}\n${template(documents)}{{- end }}\n`

const forEachKind = () =>
  `{{- range .Values.for }}\n${template(rolesFor({ plural: marks.plural, group: marks.group }))}{{- end }}\n`

/** A server that does not know a kind would refuse the whole chart; without these policies pods are repaired as they fail. */
const whereServed = (documents: readonly Manifest[]) =>
  when(`.Capabilities.APIVersions.Has "admissionregistration.k8s.io/v1/MutatingAdmissionPolicy"`, documents)
