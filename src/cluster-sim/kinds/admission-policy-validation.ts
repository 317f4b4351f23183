import { chainsIn, typeOf } from "#lib/cel.ts"
import { compileProblem, compilerSays } from "../cel-problem.ts"
import type { Json } from "../object.ts"
import type { Cause } from "../status-error.ts"
import { Findings } from "./findings.ts"

/** Validates admission policies and their bindings, in the order and the words of the server. */

export function validateValidatingPolicy({ metadata, spec = {} }: Json): Cause[] {
  const found = new Findings()
  const expressions = checkCommon(found, spec, "CONNECT")
  const { validations = [], auditAnnotations = [] } = spec
  if (validations.length === 0 && auditAnnotations.length === 0) {
    const why = "validations or auditAnnotations must contain at least one item"
    found.required("spec.validations", why)
    found.required("spec.auditAnnotations", why)
    return found.causes
  }
  for (const [index, validation] of validations.entries())
    checkValidation(found, expressions, validation, `spec.validations[${index}]`)
  for (const [index, { key = "", valueExpression = "" }] of auditAnnotations.entries()) {
    const at = `spec.auditAnnotations[${index}]`
    found.qualifiedName(`${at}.key`, `${metadata.name}/${key}`)
    if (!valueExpression.trim()) found.required(`${at}.valueExpression`, "valueExpression is not specified")
    else expressions.check(`${at}.valueExpression`, valueExpression, { wants: ["string", "null"] })
    if (auditAnnotations.findIndex((each: Json) => each.key === key) < index) found.duplicate(`${at}.key`, key)
  }
  return found.causes
}

export function validateMutatingPolicy({ spec = {} }: Json): Cause[] {
  const found = new Findings()
  const expressions = checkCommon(found, spec, undefined)
  const { mutations = [], reinvocationPolicy } = spec
  if (mutations.length === 0) found.required("spec.mutations", "mutations must contain at least one item")
  for (const [index, mutation] of mutations.entries())
    checkMutation(found, expressions, mutation, `spec.mutations[${index}]`)
  found.oneOf("spec.reinvocationPolicy", reinvocationPolicy, ["IfNeeded", "Never"])
  return found.causes
}

/** Validates the fields that both kinds of policies share. Returns the names that their expressions may use. */
function checkCommon(found: Findings, spec: Json, always: string | undefined): Expressions {
  found.oneOf("spec.failurePolicy", spec.failurePolicy, ["Fail", "Ignore"])
  if (spec.paramKind) checkParamKind(found, spec.paramKind)
  if (!spec.matchConstraints) found.required("spec.matchConstraints")
  else {
    checkMatchResources(found, spec.matchConstraints, "spec.matchConstraints")
    if (!spec.matchConstraints.resourceRules?.length) found.required("spec.matchConstraints.resourceRules")
    if (!always) checkMutable(found, spec.matchConstraints, "spec.matchConstraints")
  }
  const variables: Json[] = spec.variables ?? []
  const hasComposition = variables.length > 0 || !always
  checkConditions(found, spec)
  const expressions = new Expressions(found, Boolean(spec.paramKind), hasComposition)
  for (const [index, { name = "", expression = "" }] of variables.entries()) {
    const at = `spec.variables[${index}]`
    if (!name.trim()) found.required(`${at}.name`, "name is not specified")
    else if (!/^[_a-zA-Z][_a-zA-Z0-9]*$/.test(name)) found.invalid(`${at}.name`, name, "must be a valid CEL identifier")
    if (!expression.trim()) found.required(`${at}.expression`, "expression is not specified")
    else expressions.check(`${at}.expression`, expression)
    expressions.composed.add(name)
  }
  return expressions
}

function checkConditions(found: Findings, { matchConditions = [], paramKind }: Json) {
  const expressions = new Expressions(found, Boolean(paramKind), false)
  const names = new Set<string>()
  for (const [index, { name = "", expression = "" }] of matchConditions.entries()) {
    const at = `spec.matchConditions[${index}]`
    if (!expression.trim()) found.required(`${at}.expression`)
    else expressions.check(`${at}.expression`, expression.trim(), { wants: ["bool"] })
    if (!name) found.required(`${at}.name`)
    else found.qualifiedName(`${at}.name`, name)
    if (name && names.has(name)) found.duplicate(`${at}.name`, name)
    names.add(name)
  }
}

const reasons = ["Forbidden", "Invalid", "RequestEntityTooLarge"]

function checkValidation(found: Findings, expressions: Expressions, validation: Json, at: string) {
  const { expression = "", message = "", messageExpression = "", reason } = validation
  if (!expression.trim()) found.required(`${at}.expression`, "expression is not specified")
  else expressions.check(`${at}.expression`, expression, { wants: ["bool"] })
  if (messageExpression && !messageExpression.trim())
    found.invalid(`${at}.messageExpression`, messageExpression, "must be non-empty if specified")
  else if (messageExpression)
    expressions.check(`${at}.messageExpression`, messageExpression, { wants: ["string"], hasAuthorizer: false })
  if (message && !message.trim()) found.invalid(`${at}.message`, message, "must be non-empty if specified")
  else if (/[\n\r]/.test(message.trim())) found.invalid(`${at}.message`, message, "must not contain line breaks")
  if (reason !== undefined && !reasons.includes(reason)) found.unsupported(`${at}.reason`, reason, reasons)
}

const patches: Record<string, { field: string; other: string; wants: string } | undefined> = {
  ApplyConfiguration: { field: "applyConfiguration", other: "jsonPatch", wants: "Object" },
  JSONPatch: { field: "jsonPatch", other: "applyConfiguration", wants: "list(JSONPatch)" },
}

function checkMutation(found: Findings, expressions: Expressions, mutation: Json, at: string) {
  const { patchType } = mutation
  if (!patchType) return found.required(`${at}.patchType`)
  const patch = patches[patchType]
  if (!patch) return found.unsupported(`${at}.patchType`, patchType, Object.keys(patches))
  const { field, other, wants } = patch
  const expression = mutation[field]?.expression ?? ""
  if (!mutation[field]) found.required(`${at}.${field}`, `must be specified when patchType is ${patchType}`)
  else if (!expression.trim()) found.required(`${at}.${field}.expression`)
  else expressions.check(`${at}.${field}.expression`, expression.trim(), { wants: [wants] })
  if (mutation[other])
    found.invalid(`${at}.${other}`, `{${other}}`, `must not be specified when patchType is ${patchType}`)
}

const lenient = { isLenient: true }
const dynamic = new Set(["object", "oldObject", "params"])
const requestFields = new Set([
  ...["kind", "resource", "subResource", "requestKind", "requestResource", "requestSubResource", "name", "namespace"],
  ...["operation", "userInfo", "dryRun", "options"],
])

/** The expressions of a policy, and the names that they may use. */
class Expressions {
  /** Variables declared so far. */
  readonly composed = new Set<string>()
  readonly #found: Findings
  readonly #hasParams: boolean
  readonly #hasComposition: boolean

  constructor(found: Findings, hasParams: boolean, hasComposition: boolean) {
    this.#found = found
    this.#hasParams = hasParams
    this.#hasComposition = hasComposition
  }

  check(at: string, text: string, { wants, hasAuthorizer = true }: { wants?: string[]; hasAuthorizer?: boolean } = {}) {
    const names = ["object", "oldObject", "request", "namespaceObject"]
    if (this.#hasParams) names.push("params")
    if (hasAuthorizer) names.push("authorizer")
    if (this.#hasComposition) names.push("variables")
    const problem =
      compileProblem(text, names, lenient) ?? this.#unknownField(text) ?? (wants && wrongType(text, names, wants))
    if (problem) this.#found.invalid(at, text, problem)
  }

  #unknownField(text: string): string | undefined {
    for (const [root, field] of chainsIn(text)) {
      if (!root || !field) continue
      const known = root.name === "variables" ? this.composed : root.name === "request" ? requestFields : undefined
      // The compiler points at the dot.
      if (known && !known.has(field.name)) return compilerSays(text, field.at - 1, `undefined field '${field.name}'`)
    }
    return undefined
  }
}

function wrongType(text: string, names: readonly string[], wants: readonly string[]): string | undefined {
  const chain = /^\s*(\w+)(\.\w+)*\s*$/.exec(text)
  const type = chain && dynamic.has(chain[1]!) ? "dyn" : typeName(typeOf(text, names, lenient))
  // A type that the library cannot infer is accepted.
  if (wants.includes(type) || (type === "dyn" && !chain) || (chain && chain[1] === "variables")) return undefined
  if (type === "list(dyn)" && wants.some(each => each.startsWith("list("))) return undefined
  return wants.length === 1
    ? `must evaluate to ${wants[0]} but got ${type}`
    : `must evaluate to one of [${wants.join(" ")}] but got ${type}`
}

/** As the server's compiler writes a type. */
const typeName = (type: string): string =>
  ({ list: "list(dyn)", map: "map(dyn, dyn)", null: "null_type" })[type] ??
  type.replaceAll("<", "(").replaceAll(">", ")")

function checkParamKind(found: Findings, { apiVersion = "", kind = "" }: Json) {
  const at = "spec.paramKind"
  const [group, version, more] = apiVersion.includes("/") ? apiVersion.split("/") : ["", apiVersion]
  if (!apiVersion) found.required(`${at}.apiVersion`)
  else if (more !== undefined)
    found.invalid(`${at}.apiVersion`, apiVersion, `unexpected GroupVersion string: ${apiVersion}`)
  else {
    if (group) found.subdomain(`${at}.apiVersion`, group)
    if (!version) found.invalid(`${at}.apiVersion`, apiVersion, "version must be specified")
  }
  if (!kind) found.required(`${at}.kind`)
}

const scopes = ["*", "Cluster", "Namespaced"]
const operations = ["*", "CONNECT", "CREATE", "DELETE", "UPDATE"]
const mutableOperations = operations.filter(each => each !== "DELETE")

function checkMatchResources(found: Findings, resources: Json, at: string) {
  const { matchPolicy, namespaceSelector, objectSelector, resourceRules = [], excludeResourceRules = [] } = resources
  found.oneOf(`${at}.matchPolicy`, matchPolicy, ["Equivalent", "Exact"])
  found.selector(`${at}.namespaceSelector`, namespaceSelector)
  found.selector(`${at}.objectSelector`, objectSelector)
  for (const [index, rule] of resourceRules.entries()) checkRule(found, rule, `${at}.resourceRules[${index}]`)
  for (const [index, rule] of excludeResourceRules.entries())
    checkRule(found, rule, `${at}.excludeResourceRules[${index}]`)
}

/** Only creates and updates can be mutated. */
function checkMutable(found: Findings, { resourceRules = [] }: Json, at: string) {
  for (const rule of resourceRules)
    for (const operation of rule.operations ?? [])
      if (!mutableOperations.includes(operation))
        found.unsupported(`${at}.resourceRules.operations`, operation, mutableOperations)
}

function checkRule(found: Findings, rule: Json, at: string) {
  const { resourceNames = [], apiGroups = [], apiVersions = [], resources = [], scope } = rule
  const alone = (field: string, list: string[], what: string) => {
    if (list.length > 1 && list.includes("*"))
      found.invalid(`${at}.${field}`, list, `if '*' is present, must not specify other ${what}`)
  }
  for (const [index, name] of resourceNames.entries())
    if (resourceNames.indexOf(name) < index) found.duplicate(`${at}.resourceNames[${index}]`, name)
  if (!rule.operations?.length) found.required(`${at}.operations`)
  alone("operations", rule.operations ?? [], "operations")
  for (const [index, operation] of (rule.operations ?? []).entries())
    if (!operations.includes(operation)) found.unsupported(`${at}.operations[${index}]`, operation, operations)
  if (apiGroups.length === 0) found.required(`${at}.apiGroups`)
  alone("apiGroups", apiGroups, "API groups")
  if (apiVersions.length === 0) found.required(`${at}.apiVersions`)
  alone("apiVersions", apiVersions, "API versions")
  for (const [index, version] of apiVersions.entries()) if (!version) found.required(`${at}.apiVersions[${index}]`)
  if (resources.length === 0) found.required(`${at}.resources`)
  for (const [index, resource] of resources.entries()) if (!resource) found.required(`${at}.resources[${index}]`)
  if (resources.length > 1 && resources.includes("*/*"))
    found.invalid(`${at}.resources`, resources, "if '*/*' is present, must not specify other resources")
  if (resources.includes("*") && resources.some((each: string) => each !== "*" && !each.includes("/")))
    found.invalid(
      `${at}.resources`,
      resources,
      "if '*' is present, must not specify other resources without subresources",
    )
  if (scope !== undefined && !scopes.includes(scope)) found.unsupported(`${at}.scope`, scope, scopes)
}

export function validatePolicyBinding({ kind, spec = {} }: Json): Cause[] {
  const found = new Findings()
  const { policyName, paramRef, matchResources, validationActions } = spec
  if (!policyName) found.required("spec.policyName")
  else found.subdomain("spec.policyName", policyName)
  if (paramRef) checkParamRef(found, paramRef)
  if (matchResources) checkMatchResources(found, matchResources, "spec.matchResources")
  if (kind === "ValidatingAdmissionPolicyBinding") checkActions(found, validationActions ?? [])
  else if (matchResources) checkMutable(found, matchResources, "spec.matchResources")
  return found.causes
}

function checkParamRef(found: Findings, { name, selector, parameterNotFoundAction: action }: Json) {
  const at = "spec.paramRef"
  const why = "name and selector are mutually exclusive"
  if (name && selector) found.forbidden(`${at}.name`, why)
  if (selector) {
    found.selector(`${at}.selector`, selector)
    if (name) found.forbidden(`${at}.selector`, why)
  }
  if (!name && !selector) found.required(at, "one of name or selector must be specified")
  if (!action) found.required(`${at}.parameterNotFoundAction`)
  else if (!["Deny", "Allow"].includes(action))
    found.unsupported(`${at}.parameterNotFoundAction`, action, ["Deny", "Allow"])
}

const actions = ["Audit", "Deny", "Warn"]

function checkActions(found: Findings, given: string[]) {
  const at = "spec.validationActions"
  for (const [index, action] of given.entries()) {
    if (!actions.includes(action)) found.unsupported(`${at}[${index}]`, action, actions)
    if (given.indexOf(action) < index) found.duplicate(`${at}[${index}]`, action)
  }
  if (given.includes("Deny") && given.includes("Warn"))
    found.invalid(
      at,
      given,
      "must not contain both Deny and Warn (repeating the same validation failure information in the API response and headers serves no purpose)",
    )
  if (given.length === 0) found.required(at, "at least one validation action is required")
}
