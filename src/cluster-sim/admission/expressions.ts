import {
  type Access,
  authorizerValue,
  type Budget,
  celErrorWords,
  celValue,
  compile,
  type Expression,
  TooCostly,
  writeBudget,
} from "#lib/cel.ts"
import type { Authorizer, User } from "../auth/index.ts"
import type { Json, Obj } from "../object.ts"
import type { Attributes } from "./attributes.ts"

export type NamedExpression = { name: string; expression: string }

/** Every variable an expression of a policy may name. */
const variableNames = [
  "object",
  "oldObject",
  "request",
  "params",
  "namespaceObject",
  "authorizer",
  "variables",
] as const

/** An expression that could not be evaluated, in the server's words. */
export class EvaluationFailed extends Error {
  readonly why: string

  constructor(expression: string, why: string) {
    super(`expression '${expression}' resulted in error: ${why}`)
    this.why = why
  }
}

/** Everything an expression may see of one request, for one binding and one of its parameters. */
export type Scope = { readonly values: Record<string, unknown>; readonly budget: Budget }

/** Compiled once per policy, at the first evaluation. */
export type Compiled = { readonly expression: string; evaluate(scope: Scope): unknown }

/** A spent budget ends the evaluation of the whole policy: another `TooCostly`, in the server's words. */
export class OutOfBudget extends TooCostly {
  constructor() {
    super("validation failed due to running out of cost budget, no further validation rules will be run")
  }
}

export function compiled(expression: string): Compiled {
  let evaluate: Expression | undefined
  return {
    expression,
    evaluate({ values, budget }) {
      try {
        evaluate ??= compile(expression, variableNames, { isLenient: true })
        return evaluate(values, budget)
      } catch (error) {
        if (error instanceof TooCostly) throw new OutOfBudget()
        throw new EvaluationFailed(expression, celErrorWords(error))
      }
    },
  }
}

/** Values that all policies share for one request. They are translated when the first policy needs them. */
export function requestValues(request: Attributes, as: { object: Json; old: Json }, authorizer: Authorizer) {
  const budget = writeBudget()
  const value = (json: Json) => remembered(() => celValue(json, undefined, budget))
  const object = value(as.object)
  const oldObject = value(as.old)
  return {
    object,
    oldObject,
    authorizer: remembered(() => authorizerOf(request, authorizer)),
  }
}

export type RequestValues = ReturnType<typeof requestValues>

function remembered<T>(make: () => T): () => T {
  let made: { value: T } | undefined
  return () => {
    made ??= { value: make() }
    return made.value
  }
}

/** A scope for a binding's evaluation: variables are evaluated when they are first read. */
export function scopeOf(
  shared: RequestValues,
  given: { request: Json; params: Json; namespace: Obj | undefined },
  variables: readonly { name: string; compiled: Compiled }[],
): Scope {
  const budget = writeBudget()
  const values: Record<string, unknown> = Object.create(null)
  const scope: Scope = { values, budget }
  const read = (name: string, get: () => unknown) =>
    Object.defineProperty(values, name, { get: remembered(get), enumerable: true })
  read("object", shared.object)
  read("oldObject", shared.oldObject)
  read("authorizer", shared.authorizer)
  read("request", () => celValue(given.request, undefined, budget))
  read("params", () => celValue(given.params, undefined, budget))
  read("namespaceObject", () => celValue(namespaceFields(given.namespace), undefined, budget))
  const composed = Object.create(null)
  for (const { name, compiled } of variables)
    Object.defineProperty(composed, name, {
      get: remembered(() => composedValue(name, compiled, scope)),
      enumerable: true,
    })
  values.variables = composed
  return scope
}

function composedValue(name: string, { evaluate }: Compiled, scope: Scope): unknown {
  try {
    return evaluate(scope)
  } catch (error) {
    if (!(error instanceof EvaluationFailed)) throw error
    throw new Error(`composited variable ${JSON.stringify(name)} fails to evaluate: ${error.why}`)
  }
}

/** A namespace without the metadata that other controllers maintain. */
function namespaceFields(namespace: Obj | undefined): Json {
  if (!namespace) return null
  const { managedFields: _, ownerReferences: __, ...metadata } = namespace.metadata
  return { metadata, spec: namespace.spec, status: namespace.status }
}

function authorizerOf(request: Attributes, authorizer: Authorizer): unknown {
  const { resource, subresource, namespace, name, user } = request
  const access: Access = (check, account) => authorizer(account ? accountUser(account) : user, check)
  return authorizerValue(access, { group: resource.group, resource: resource.resource, subresource, namespace, name })
}

const accountUser = ({ namespace, name }: { namespace: string; name: string }): User => ({
  name: `system:serviceaccount:${namespace}:${name}`,
  groups: ["system:serviceaccounts", `system:serviceaccounts:${namespace}`, "system:authenticated"],
})

/** The variable `request`, without empty fields. */
export function requestValue(
  { kind, resource, subresource, name, namespace, operation, user, isDryRun, options }: Attributes,
  matched: { kind: Attributes["kind"]; resource: Attributes["resource"] },
): Json {
  const { name: username, uid = "", groups, extra } = user
  return {
    uid: "",
    kind: matched.kind,
    resource: matched.resource,
    ...(subresource && { subResource: subresource, requestSubResource: subresource }),
    requestKind: kind,
    requestResource: resource,
    ...(name && { name }),
    ...(namespace && { namespace }),
    operation,
    userInfo: { username, ...(uid && { uid }), groups, ...(extra && { extra }) },
    dryRun: isDryRun,
    options,
  }
}
