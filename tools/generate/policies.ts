import type { Manifest } from "#cli/manifests/names.ts"
import { policies } from "#cli/manifests/policies.ts"
import { toDocuments } from "#cli/render/yaml.ts"
import { type GeneratedFile, inRepository } from "./file.ts"

/** The admission policies, as the chart installs them. */
export const policyFiles = (): GeneratedFile[] => {
  const all = policies()
  if (toDocuments(all).includes("{{"))
    throw new Error("an admission policy contains {{, which Helm takes for a template")
  const mutating = all.filter(({ kind }) => kind.startsWith("Mutating"))
  const documents = toDocuments(all.filter(manifest => !mutating.includes(manifest)))
  return [
    {
      path: inRepository("charts/aim/templates/policies.yaml"),
      content: `# Generated from src/policies by npm run generate.\n${documents}${whereServed(mutating)}`,
    },
  ]
}

/** A server that does not know a kind would refuse the whole chart; without these policies pods are repaired as they fail. */
const whereServed = (manifests: Manifest[]) =>
  manifests.length === 0
    ? ""
    : `{{- if .Capabilities.APIVersions.Has "admissionregistration.k8s.io/v1/MutatingAdmissionPolicy" }}
${toDocuments(manifests)}{{- end }}
`
