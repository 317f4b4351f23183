import { readFile } from "node:fs/promises"
import { kinds } from "#api/kinds.ts"
import { type StructuralSchema, structuralSchema } from "#api/structural-schema.ts"
import { imageSpec, imageSpecConditions } from "#api/v1alpha1/serviceimage/index.ts"
import { type GeneratedFile, inRepository, withSections } from "./file.ts"
import { declared } from "./kinds.generated.ts"
import { code, table } from "./markdown.ts"

/** What the page of a kind is made from, as the kind exports it. */
type Documented = {
  conditions: Record<string, { means: string; reasons: readonly string[] }>
  reasons: Record<string, string>
  phases?: Record<string, string>
}

/** Further sections of one page. */
const more: Record<string, () => Record<string, string>> = { serviceimage: () => ({ contract: contract() }) }

/** The reference part of each kind's page. People write the YAML and the explanation at the top of the page. */
export const kindPages = (): Promise<GeneratedFile[]> =>
  Promise.all(
    kinds.map(async ({ singular, schema }) => {
      const path = inRepository(`docs/kinds/${singular}.md`)
      const { conditions, reasons, phases } = (declared as Record<string, Documented>)[singular]!
      const { spec, status } = schema.properties ?? {}
      const sections = {
        spec: fieldTable(spec ?? {}, "spec"),
        status: fieldTable(status ?? {}, "status"),
        conditions: table(["Condition", "True means", "Reasons"], conditionRows(conditions)),
        reasons: table(["Reason", "Meaning"], wordRows(reasons)),
        ...more[singular]?.(),
        ...(phases && { phases: table(["Phase", "Meaning"], wordRows(phases)) }),
      }
      return { path, content: withSections(await readFile(path, "utf8"), sections) }
    }),
  )

/** The index of docs/kinds. */
export async function kindIndex(): Promise<GeneratedFile> {
  const path = inRepository("docs/kinds/README.md")
  const rows = kinds.map(({ kind, singular, plural, shortNames, scope, description }) => [
    `[${kind}](${singular}.md)`,
    [...shortNames, singular, plural].map(code).join(", "),
    scope === "Cluster" ? "cluster" : "namespace",
    description,
  ])
  const index = table(["Kind", "Names", "Scope", "What it is for"], rows)
  return { path, content: withSections(await readFile(path, "utf8"), { index }) }
}

/** What a custom kind must have to be managed. */
function contract(): string {
  const { properties = {} } = structuralSchema(imageSpec)
  const spec = Object.entries(properties).map(([name, { description = "" }]) => [code(`spec.${name}`), description])
  const conditions = Object.entries(imageSpecConditions).map(([type, means]) => [
    `\`status.conditions\`, ${code(type)}`,
    means,
  ])
  const generation = [
    code("status.observedGeneration"),
    "The generation that the conditions are about. Conditions of an older generation are ignored.",
  ]
  return table(["In the object", "Meaning"], [...spec, generation, ...conditions])
}

const wordRows = (words: Record<string, string>) =>
  Object.entries(words).map(([word, meaning]) => [code(word), meaning])

const conditionRows = (conditions: Documented["conditions"]) =>
  Object.entries(conditions).map(([type, { means, reasons }]) => [code(type), means, reasons.map(code).join(", ")])

function fieldTable(schema: StructuralSchema, path: string): string {
  const rows = table(["Field", "Type", "Default", "Meaning"], fields(schema, path))
  const rules = rulesOf(schema, path)
  return rules.length === 0 ? rows : `${rows}\n\nBeyond types and bounds:\n\n${rules.join("\n")}`
}

/** One row a field, depth first, in the order of the declaration. */
function fields(schema: StructuralSchema, path: string): string[][] {
  return Object.entries(schema.properties ?? {}).flatMap(([name, child]) => {
    const required = schema.required?.includes(name)
    const row = [
      code(`${path}.${name}`),
      typeOf(child),
      required ? "required" : defaultOf(child),
      child.description ?? "",
    ]
    return [row, ...fields(child, `${path}.${name}`), ...fields(child.items ?? {}, `${path}.${name}[]`)]
  })
}

/** Each message of a rule once, at its first field. */
function rulesOf(schema: StructuralSchema, path: string, said = new Set<string>()): string[] {
  const own = (schema["x-kubernetes-validations"] ?? []).flatMap(({ message, fieldPath = "" }) => {
    if (said.has(message)) return []
    said.add(message)
    return [`- ${code(path + fieldPath)}: ${message}`]
  })
  const children = Object.entries(schema.properties ?? {}).flatMap(([name, child]) =>
    rulesOf(child, `${path}.${name}`, said),
  )
  return [...own, ...children, ...(schema.items ? rulesOf(schema.items, `${path}[]`, said) : [])]
}

function typeOf(schema: StructuralSchema): string {
  const keys = schema["x-kubernetes-list-map-keys"]?.map(code).join(" and ")
  return typeName(schema) + boundsOf(schema) + (keys ? `, by ${keys}` : "")
}

function typeName(schema: StructuralSchema): string {
  if (schema["x-kubernetes-int-or-string"]) return "number or percentage"
  if (schema.enum) return schema.enum.map(value => code(String(value))).join(" or ")
  if (schema.format === "date-time") return "time"
  if (schema.additionalProperties) return `map to ${typeName(schema.additionalProperties)}`
  if (schema.items) return `list of ${typeName(schema.items)}`
  const names = {
    string: "text",
    integer: "number",
    number: "number",
    boolean: "`true` or `false`",
    object: "object",
    array: "list",
  }
  return names[schema.type ?? "object"]
}

function boundsOf(schema: StructuralSchema): string {
  if (schema["x-kubernetes-int-or-string"] || schema.format === "date-time") return ""
  if (schema.type === "integer") return `, ${schema.minimum} to ${schema.maximum}`
  const most = schema.maxLength ?? schema.maxItems ?? schema.maxProperties
  return most === undefined ? "" : `, at most ${most}`
}

const defaultOf = ({ default: value }: StructuralSchema) =>
  value === undefined ? "" : code(typeof value === "string" && value !== "" ? value : JSON.stringify(value))
