import { type CelSchema, type Chain, chainsIn, matches, mismatchIn, typeOf } from "#lib/cel.ts"
import { compileProblem, compilerSays } from "../cel-problem.ts"
import { Findings } from "../kinds/findings.ts"
import type { Json, Obj } from "../object.ts"
import type { Cause } from "../status-error.ts"
import type { Column } from "./columns.ts"
import { withDefaults } from "./defaulting.ts"
import { parsePath } from "./json-path.ts"
import { type Props, type Rule, valuesOf } from "./props.ts"
import { validateStructure } from "./structural-validation.ts"

/** A version of a CRD as it is written. */
export type DefinedVersion = {
  name: string
  served: boolean
  storage: boolean
  deprecated?: boolean
  deprecationWarning?: string
  schema?: { openAPIV3Schema?: Props }
  subresources?: {
    status?: Json
    scale?: { specReplicasPath: string; statusReplicasPath: string; labelSelectorPath?: string }
  }
  additionalPrinterColumns?: Column[]
  selectableFields?: { jsonPath: string }[]
}

/** The server's refusals of a CustomResourceDefinition. */
export function validateDefinition({ metadata, spec, status }: Json): Cause[] {
  const found = new Findings()
  const { group = "", names = {}, scope = "" } = spec
  const versions: DefinedVersion[] = spec.versions ?? []
  if (metadata.name !== `${names.plural ?? ""}.${group}`)
    found.invalid("metadata.name", metadata.name, 'must be spec.names.plural+"."+spec.group')
  validateApproval(found, metadata, group)
  if (!group) found.required("spec.group")
  else if (/^[a-z0-9]([-a-z0-9]*[a-z0-9])?$/.test(group))
    found.invalid("spec.group", group, "should be a domain with at least one dot")
  else found.subdomain("spec.group", group)
  if (!scope) found.required("spec.scope")
  else if (scope !== "Cluster" && scope !== "Namespaced")
    found.unsupported("spec.scope", scope, ["Cluster", "Namespaced"])
  validateVersions(found, versions, spec)
  validateNames(found, names)
  validateConversion(found, spec.conversion ?? {})
  if (spec.preserveUnknownFields)
    found.invalid(
      "spec.preserveUnknownFields",
      true,
      "cannot set to true, set x-kubernetes-preserve-unknown-fields to true in spec.versions[*].schema instead",
    )
  validateStored(found, status?.storedVersions, versions)
  return found.causes
}

export function validateDefinitionUpdate(object: Json, old: Obj): Cause[] {
  const found = new Findings()
  found.causes.push(...validateDefinition(object))
  const isEstablished = old.status?.conditions?.some(
    ({ type, status }: Json) => type === "Established" && status === "True",
  )
  if (isEstablished)
    for (const [field, name] of [
      ["spec.scope", "scope"],
      ["spec.names.kind", "names.kind"],
    ] as const)
      found.immutable(field, at(object.spec, name), at(old.spec, name))
  found.immutable("spec.group", object.spec.group, old.spec.group)
  found.immutable("spec.names.plural", object.spec.names.plural, old.spec.names.plural)
  // The name follows from these two, so the server reports only them.
  return found.causes.filter(
    ({ field, message }) => field !== "metadata.name" || !message.includes("must be spec.names"),
  )
}

const at = (object: Json, path: string) => path.split(".").reduce((node, step) => node?.[step], object)

function validateApproval(found: Findings, { annotations = {} }: Json, group: string) {
  const isProtected = /(^|\.)(k8s\.io|kubernetes\.io)$/.test(group)
  if (isProtected && !annotations["api-approved.kubernetes.io"])
    found.required(
      "metadata.annotations[api-approved.kubernetes.io]",
      'protected groups must have approval annotation "api-approved.kubernetes.io", see https://github.com/kubernetes/enhancements/pull/1111',
    )
}

const label1035 = (name: string) =>
  name.length <= 63 && /^[a-z]([-a-z0-9]*[a-z0-9])?$/.test(name)
    ? []
    : [
        "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an alphabetic character, and end with an alphanumeric character (e.g. 'my-name',  or 'abc-123', regex used for validation is '[a-z]([-a-z0-9]*[a-z0-9])?')",
      ]
const mixedCase = (name: string) =>
  label1035(name.toLowerCase()).map(why => `may have mixed case, but should otherwise match: ${why}`)

function validateNames(found: Findings, names: Json) {
  for (const [field, rule] of [
    ["plural", label1035],
    ["singular", label1035],
    ["kind", mixedCase],
    ["listKind", mixedCase],
  ] as const)
    if (!names[field]) found.required(`spec.names.${field}`)
    else found.rule(`spec.names.${field}`, names[field], rule)
  if (names.kind && names.kind === names.listKind)
    found.invalid("spec.names.listKind", names.listKind, "kind and listKind may not be the same")
  for (const field of ["shortNames", "categories"])
    for (const [index, name] of (names[field] ?? []).entries())
      found.rule(`spec.names.${field}[${index}]`, name, label1035)
}

function validateVersions(found: Findings, versions: DefinedVersion[], spec: Json) {
  const shared = sharedParts(versions)
  for (const [index, version] of versions.entries()) {
    const own = `spec.versions[${index}]`
    found.rule(`${own}.name`, version.name ?? "", label1035)
    const schema = version.schema?.openAPIV3Schema
    if (!schema) found.required(`${own}.schema.openAPIV3Schema`)
    // The server keeps what all versions share in one place, and reports it once, there.
    if (schema && (!shared.schema || index === 0)) {
      const path = shared.schema ? "spec.validation.openAPIV3Schema" : `${own}.schema.openAPIV3Schema`
      validateRoot(found, schema, path)
    }
    if (!shared.columns || index === 0)
      validateColumns(found, version.additionalPrinterColumns ?? [], shared.columns ? "spec" : own)
    if (!shared.subresources || index === 0)
      validateScale(found, version.subresources?.scale, shared.subresources ? "spec" : own)
  }
  const storage = versions.filter(version => version.storage)
  if (new Set(versions.map(({ name }) => name)).size !== versions.length)
    found.invalid("spec.versions", goVersions(versions, shared), "must contain unique version names")
  if (storage.length !== 1)
    found.invalid(
      "spec.versions",
      goVersions(versions, shared),
      "must have exactly one version marked as storage version",
    )
  if (versions[0]?.name && !spec.version) found.rule("spec.version", versions[0].name, label1035)
}

function sharedParts(versions: DefinedVersion[]) {
  const isOne = (part: (version: DefinedVersion) => Json) =>
    new Set(versions.map(each => JSON.stringify(part(each) ?? null))).size === 1
  return {
    schema: isOne(version => version.schema),
    columns: isOne(version => version.additionalPrinterColumns),
    subresources: isOne(version => version.subresources),
  }
}

const goVersions = (versions: DefinedVersion[], shared: { schema: boolean }) =>
  versions.map(({ name, served, storage, schema }) => ({
    Name: name,
    Served: served,
    Storage: storage,
    Deprecated: false,
    DeprecationWarning: null,
    Schema: shared.schema ? null : (schema ?? null),
    Subresources: null,
    AdditionalPrinterColumns: null,
    SelectableFields: null,
  }))

const columnTypes = ["boolean", "date", "integer", "number", "string"]

function validateColumns(found: Findings, columns: Column[], path: string) {
  for (const [index, { name, type, jsonPath }] of columns.entries()) {
    const own = `${path}.additionalPrinterColumns[${index}]`
    if (!name) found.required(`${own}.name`)
    if (!type) found.required(`${own}.type`)
    else if (!columnTypes.includes(type)) found.invalid(`${own}.type`, type, `must be one of ${columnTypes.join(",")}`)
    if (!jsonPath) found.required(`${own}.JSONPath`)
  }
}

function validateScale(found: Findings, scale: NonNullable<DefinedVersion["subresources"]>["scale"], path: string) {
  if (!scale) return
  const check = (field: string, value: string, root: string) => {
    const own = `${path}.subresources.scale.${field}`
    if (!value) return found.required(own)
    if (!value.startsWith(".") || !parsePath(value))
      return found.invalid(own, value, "must be a simple json path starting with .")
    if (!value.startsWith(`${root}.`)) found.invalid(own, value, `should be a json path under ${root}`)
  }
  check("specReplicasPath", scale.specReplicasPath, ".spec")
  check("statusReplicasPath", scale.statusReplicasPath, ".status")
}

function validateConversion(found: Findings, { strategy, webhook, conversionReviewVersions }: Json) {
  const path = "spec.conversion"
  if (strategy !== "None" && strategy !== "Webhook")
    return found.unsupported(`${path}.strategy`, strategy ?? "", ["None", "Webhook"])
  if (strategy !== "Webhook") return
  if (!webhook?.clientConfig) found.required(`${path}.webhookClientConfig`, "required when strategy is set to Webhook")
  if (!(webhook?.conversionReviewVersions ?? conversionReviewVersions)?.length)
    found.required(`${path}.conversionReviewVersions`)
}

function validateStored(found: Findings, stored: string[] | undefined, versions: DefinedVersion[]) {
  if (!stored?.length) return found.invalid("status.storedVersions", null, "must have at least one stored version")
  for (const [index, name] of stored.entries())
    if (!versions.some(version => version.name === name))
      found.invalid(
        `status.storedVersions[${index}]`,
        name,
        `missing from spec.versions; ${name} was previously a storage version, and must remain in spec.versions until a storage migration ensures no data remains persisted in ${name} and removes ${name} from status.storedVersions`,
      )
  const last = versions.findLast(version => version.storage)
  if (last && !stored.includes(last.name))
    found.invalid("status.storedVersions", stored, `must have the storage version ${last.name}`)
}

function validateRoot(found: Findings, root: Props, path: string) {
  if (!root.type) return found.required(`${path}.type`, "must not be empty at the root")
  if (root.type !== "object") return found.invalid(`${path}.type`, root.type, "must be object at the root")
  const metadata = root.properties?.metadata
  if (metadata) {
    const names = Object.keys(metadata.properties ?? {})
    if (metadata.type !== "object") found.required(`${path}.properties[metadata].type`, "must be object")
    if (names.some(name => name !== "name" && name !== "generateName"))
      found.forbidden(
        `${path}.properties[metadata]`,
        "must not specify anything other than name and generateName, but metadata is implicitly specified",
      )
  }
  validateNode(found, root, path, undefined)
}

const types = ["array", "boolean", "integer", "number", "object", "string"]

/** One node and all below it. `apart` is the nearest list or map whose elements cannot be identified. */
function validateNode(found: Findings, props: Props, path: string, apart: string | undefined) {
  if (props.$ref) return found.forbidden(`${path}.$ref`, "$ref is not supported")
  if (props.type && !types.includes(props.type)) return found.unsupported(`${path}.type`, props.type, types)
  if (props.uniqueItems)
    found.forbidden(
      `${path}.uniqueItems`,
      "uniqueItems cannot be set to true since the runtime complexity becomes quadratic",
    )
  if (props.properties && valuesOf(props))
    found.forbidden(`${path}.additionalProperties`, "additionalProperties and properties are mutual exclusive")
  if (props.pattern !== undefined) validatePattern(found, props.pattern, `${path}.pattern`)
  validateListType(found, props, path)
  validateDefault(found, props, path)
  for (const [index, rule] of (props["x-kubernetes-validations"] ?? []).entries())
    validateRule(found, rule, props, `${path}.x-kubernetes-validations[${index}]`, apart)

  if (props.type === "array") {
    if (!props.items) found.required(`${path}.items`, "must be specified")
    else if (!isTyped(props.items)) found.required(`${path}.items.type`, "must not be empty for specified array items")
    else
      validateNode(
        found,
        props.items,
        `${path}.items`,
        props["x-kubernetes-list-type"] === "map" ? apart : (apart ?? path),
      )
  }
  const isAtomic = props["x-kubernetes-map-type"] === "atomic"
  for (const [name, child] of Object.entries(props.properties ?? {})) {
    const own = `${path}.properties[${name}]`
    if (!isTyped(child) && !child.$ref) found.required(`${own}.type`, "must not be empty for specified object fields")
    else validateNode(found, child, own, isAtomic ? (apart ?? path) : apart)
  }
  const values = valuesOf(props)
  if (values && !props.properties) {
    if (!isTyped(values))
      found.required(`${path}.additionalProperties.type`, "must not be empty for specified object fields")
    else validateNode(found, values, `${path}.additionalProperties`, isAtomic ? (apart ?? path) : apart)
  }
}

const isTyped = (props: Props) =>
  Boolean(props.type || props["x-kubernetes-int-or-string"] || props["x-kubernetes-preserve-unknown-fields"])

function validatePattern(found: Findings, pattern: string, path: string) {
  try {
    matches("", pattern)
  } catch (error) {
    const why = error instanceof Error ? error.message : String(error)
    found.invalid(path, pattern, `must be a valid regular expression, but isn't: ${why}`)
  }
}

function validateListType(found: Findings, props: Props, path: string) {
  const type = props["x-kubernetes-list-type"]
  if (type === undefined) return
  if (props.type !== "array")
    return found.invalid(`${path}.type`, props.type ?? "", "must be array if x-kubernetes-list-type is specified")
  if (!["atomic", "set", "map"].includes(type))
    return found.unsupported(`${path}.x-kubernetes-list-type`, type, ["atomic", "set", "map"])
  if (type !== "map") return
  const keys = props["x-kubernetes-list-map-keys"]
  if (!keys?.length)
    return found.required(`${path}.x-kubernetes-list-map-keys`, "must not be empty if x-kubernetes-list-type is map")
  const { items } = props
  if (items?.type !== "object")
    return found.invalid(
      `${path}.items.type`,
      items?.type ?? "",
      "must be object if parent array's x-kubernetes-list-type is map",
    )
  const names = Object.keys(items.properties ?? {})
  if (!keys.every(key => names.includes(key)))
    return found.invalid(`${path}.x-kubernetes-list-map-keys`, keys, "entries must all be names of item properties")
  for (const key of keys)
    if (!items.required?.includes(key) && items.properties![key]!.default === undefined)
      found.required(
        `${path}.items.properties[${key}].default`,
        "this property is in x-kubernetes-list-map-keys, so it must have a default or be a required property",
      )
}

function validateDefault(found: Findings, props: Props, path: string) {
  if (props.default === undefined) return
  const field = `${path}.default`
  if (hasUnknown(props.default, props)) return found.invalid(field, props.default, "must not have unknown fields")
  for (const cause of validateStructure(withDefaults(props.default, props), props))
    found.causes.push({ ...cause, field: cause.field === "<nil>" ? field : `${field}.${cause.field}` })
}

function hasUnknown(value: Json, props: Props): boolean {
  if (props["x-kubernetes-preserve-unknown-fields"]) return false
  if (Array.isArray(value)) return props.items !== undefined && value.some(item => hasUnknown(item, props.items!))
  if (typeof value !== "object" || value === null || props.type !== "object") return false
  const values = valuesOf(props)
  return Object.entries(value).some(([name, child]) => {
    const known = props.properties?.[name] ?? values
    return known ? hasUnknown(child, known) : props.additionalProperties !== true
  })
}

const reasons = ["FieldValueDuplicate", "FieldValueForbidden", "FieldValueInvalid", "FieldValueRequired"]

function validateRule(found: Findings, rule: Rule, props: Props, path: string, apart: string | undefined) {
  const { rule: text = "", message, messageExpression, reason, fieldPath } = rule
  if (!text.trim()) return found.required(`${path}.rule`, "rule is not specified")
  if (message !== undefined && message !== "" && !message.trim())
    found.invalid(`${path}.message`, message, "must be non-empty if specified")
  else if (message?.includes("\n")) found.invalid(`${path}.message`, message, "must not contain line breaks")
  else if (text.includes("\n") && !message)
    found.required(`${path}.message`, "message must be specified if rule contains line breaks")
  if (reason !== undefined && !reasons.includes(reason)) found.unsupported(`${path}.reason`, reason, reasons)
  if (fieldPath && !isField(fieldPath, props)) found.invalid(`${path}.fieldPath`, fieldPath, "must be a valid path")
  const go = {
    Rule: text,
    Message: message ?? "",
    MessageExpression: messageExpression ?? "",
    Reason: reason ?? null,
    FieldPath: fieldPath ?? "",
    OptionalOldSelf: rule.optionalOldSelf ?? null,
  }
  const ruleProblem = expressionProblem(text, props, "bool", "cel expression must evaluate to a bool")
  if (ruleProblem) found.invalid(`${path}.rule`, go, ruleProblem)
  else if (apart && /\boldSelf\b/.test(text))
    found.invalid(
      `${path}.rule`,
      text,
      `oldSelf cannot be used on the uncorrelatable portion of the schema within ${apart}`,
    )
  if (!messageExpression) return
  const problem = expressionProblem(messageExpression, props, "string", "messageExpression must evaluate to a string")
  if (problem) found.invalid(`${path}.messageExpression`, go, problem)
}

/** The error in an expression, in our own words where we do not know those of the server's compiler. */
function expressionProblem(text: string, props: Props, wanted: string, otherwise: string): string | undefined {
  const broken = compileProblem(text, ["self", "oldSelf"])
  if (broken) return broken
  for (const [variable, ...fields] of chainsIn(text)) {
    const unknown = variable?.name === "self" && unknownField(fields, props)
    // The compiler points at the dot.
    if (unknown) return compilerSays(text, unknown.at - 1, `undefined field '${unknown.name}'`)
  }
  const mismatch = mismatchIn(text, props as CelSchema)
  if (mismatch) {
    const { operator, at, types } = mismatch
    return compilerSays(text, at, `found no matching overload for '_${operator}_' applied to '(${types.join(", ")})'`)
  }
  const type = selectedType(text, props) ?? typeOf(text, ["self", "oldSelf"])
  return type === wanted || type === "dyn" ? undefined : otherwise
}

/** The first field of a chain that the schema does not have. Methods end a chain, so every name in it is a field. */
function unknownField(fields: Chain, root: Props): Chain[number] | undefined {
  let props: Props | undefined = root
  for (const field of fields) {
    const { name } = field
    if (props?.type !== "object" || props["x-kubernetes-preserve-unknown-fields"] || valuesOf(props)) return undefined
    if (props["x-kubernetes-embedded-resource"] || !props.properties) return undefined
    if (name.includes("__") || ["metadata", "apiVersion", "kind"].includes(name)) return undefined
    const next: Props | undefined = props.properties[name]
    if (!next) return field
    props = next
  }
  return undefined
}

/** The type of an expression that consists of a single field access. */
function selectedType(text: string, props: Props): string | undefined {
  const match = /^\s*self((?:\.\w+)*)\s*$/.exec(text)
  if (!match) return undefined
  const target = match[1]!
    .split(".")
    .slice(1)
    .reduce<Props | undefined>((node, name) => node?.properties?.[name], props)
  if (!target?.type) return "dyn"
  return target.type === "boolean" ? "bool" : target.type
}

function isField(path: string, props: Props): boolean {
  const steps = parsePath(path)
  if (!steps || !path.startsWith(".")) return false
  let node: Props | undefined = props
  for (const step of steps) {
    if (!("field" in step)) return false
    node = node?.properties?.[step.field] ?? (node && valuesOf(node))
    if (!node) return false
  }
  return true
}
