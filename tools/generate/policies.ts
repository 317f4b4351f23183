import { policies } from "#cli/manifests/policies.ts"
import { toDocuments } from "#cli/render/yaml.ts"
import { type GeneratedFile, inRepository } from "./file.ts"

/** The admission policies, as the chart installs them. */
export const policyFiles = (): GeneratedFile[] => {
  const documents = toDocuments(policies())
  if (documents.includes("{{")) throw new Error("an admission policy contains {{, which Helm takes for a template")
  return [
    {
      path: inRepository("charts/aim/templates/policies.yaml"),
      content: `# Generated from src/policies by npm run generate.\n${documents}`,
    },
  ]
}
