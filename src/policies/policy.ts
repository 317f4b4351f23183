/** A ValidatingAdmissionPolicy and how it is bound: evaluated by the API server itself, so no server of ours can be down. */
export type ValidatingPolicy = {
  name: string
  /** What happens to a request that fails a validation. */
  validationActions: readonly ("Deny" | "Warn" | "Audit")[]
  spec: Matching & { validations: readonly Validation[] }
}

/** A MutatingAdmissionPolicy, evaluated for each parameter: an object in the namespace of the request, or of the cluster. */
export type MutatingPolicy = {
  name: string
  /** The name of the one parameter. Default: all objects of the kind. */
  paramName?: string
  spec: Matching & {
    paramKind: { apiVersion: string; kind: string }
    reinvocationPolicy: "Never" | "IfNeeded"
    mutations: readonly { patchType: "JSONPatch"; jsonPatch: { expression: string } }[]
  }
}

export type Policy = ValidatingPolicy | MutatingPolicy

type Matching = {
  failurePolicy: "Fail" | "Ignore"
  matchConstraints: { resourceRules: readonly ResourceRule[] }
  matchConditions?: readonly NamedExpression[]
  /** Evaluated when first used, in order: each may use those before it as `variables.NAME`. */
  variables: readonly NamedExpression[]
}

type NamedExpression = { name: string; expression: string }

export type ResourceRule = {
  apiGroups: readonly string[]
  apiVersions: readonly string[]
  resources: readonly string[]
  operations: readonly ("CREATE" | "UPDATE" | "DELETE")[]
  scope: "Cluster" | "Namespaced"
}

type Validation = {
  expression: string
  reason: "Invalid" | "Forbidden"
  /** The message if the expression below cannot be evaluated. */
  message: string
  messageExpression: string
}

export const named = (expressions: Readonly<Record<string, string>>): NamedExpression[] =>
  Object.entries(expressions).map(([name, expression]) => ({ name, expression }))

/** Whether the author of the request may patch a resource in the namespace of the request. */
export const mayPatch = (group: string, resource: string) =>
  `authorizer.group('${group}').resource('${resource}').namespace(request.namespace).check('patch').allowed()`

/**
 * Whether the author is a hub that delivers objects of this kind: it holds the verb `deliver` on the kind, and need not
 * hold the rights on workloads that the controllers use. It stands in for no right on Secrets. In all namespaces: the
 * owner of one namespace often has every verb on our kinds in it, and is no hub for that.
 */
export const mayDeliver = ({ group, plural }: { group: string; plural: string }) =>
  `authorizer.group('${group}').resource('${plural}').check('deliver').allowed()`
