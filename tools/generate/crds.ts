import { stringify } from "yaml"
import { crdOf } from "#api/crd.ts"
import { kinds } from "#api/kinds.ts"
import { type GeneratedFile, inRepository } from "./file.ts"

/** One CustomResourceDefinition a file, where Helm looks for them. */
export const crdFiles = (): GeneratedFile[] =>
  kinds.map(kind => ({
    path: inRepository(`charts/aim/crds/${kind.plural}.yaml`),
    // Long lines and no anchors: easy to review, and readable for every YAML parser.
    content: `# Generated from src/api by npm run generate.\n${stringify(crdOf(kind), { lineWidth: 0, aliasDuplicateObjects: false })}`,
  }))
