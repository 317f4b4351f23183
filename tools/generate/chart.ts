import { stringify } from "yaml"
import { manifests } from "#cli/manifests/all.ts"
import type { Manifest } from "#cli/manifests/names.ts"
import { policies } from "#cli/manifests/policies.ts"
import { rolesFor } from "#cli/manifests/rbac.ts"
import { sources } from "#cli/manifests/sources.ts"
import { toDocuments } from "#cli/render/yaml.ts"
import manifest from "../../package.json" with { type: "json" }
import { type GeneratedFile, inRepository } from "./file.ts"

/** The placeholder in the manifests for an expression of the chart; no manifest contains it otherwise. */
const expressions = {
  "chart-release-namespace": "{{ .Release.Namespace | quote }}",
  "chart.values.image/aim": "{{ .Values.image | quote }}",
  "chart-plural": "{{ .plural }}",
  "chart.group": "{{ .group }}",
}
const [namespace, image, plural, group] = Object.keys(expressions) as [string, string, string, string]

/** The Helm chart: what `aim manifests all` prints, with the namespace, the image and the kinds as values. */
export const chartFiles = (): GeneratedFile[] => {
  const all = manifests({ section: "all", foreign: [], namespace, image }, sources())
  const admission = policies()
  // Helm makes the namespace, and installs what is in crds/ by itself.
  const elsewhere = new Set([...admission.map(({ kind }) => kind), "CustomResourceDefinition", "Namespace"])
  const controller = all.filter(({ kind }) => !elsewhere.has(kind))
  const mutating = admission.filter(({ kind }) => kind.startsWith("Mutating"))
  const others = admission.filter(policy => !mutating.includes(policy))
  return [
    file("Chart.yaml", "package.json", stringify(chart())),
    file("values.yaml", "tools/generate/chart.ts", values),
    file("templates/controller.yaml", "src/controllers and src/cli/manifests", template(controller) + forEachKind()),
    file("templates/policies.yaml", "src/policies", template(others) + whereServed(mutating)),
  ]
}

const file = (path: string, source: string, content: string): GeneratedFile => ({
  path: inRepository(`charts/aim/${path}`),
  content: `# Generated from ${source} by npm run generate.\n${content}`,
})

const chart = () => ({
  apiVersion: "v2",
  name: "aim",
  description: manifest.description,
  type: "application",
  version: manifest.version,
  appVersion: manifest.version,
})

const values = `# The image of aim: what npm run image -- --push has pushed.
image: autoimagemanager/aim:${manifest.version}
# Kinds of your own that a ServiceImage may name, as --for of aim manifests: {plural: dicoms, group: services.example.com}
for: []
`

function template(documents: readonly Manifest[]): string {
  const text = toDocuments(documents)
  if (text.includes("{{")) throw new Error("a manifest contains {{, which Helm takes for a template")
  return Object.entries(expressions).reduce((text, [name, expression]) => text.replaceAll(name, expression), text)
}

const forEachKind = () => `{{- range .Values.for }}\n${template(rolesFor({ plural, group }))}{{- end }}\n`

/** A server that does not know a kind would refuse the whole chart; without these policies pods are repaired as they fail. */
const whereServed = (documents: readonly Manifest[]) =>
  documents.length === 0
    ? ""
    : `{{- if .Capabilities.APIVersions.Has "admissionregistration.k8s.io/v1/MutatingAdmissionPolicy" }}
${template(documents)}{{- end }}
`
