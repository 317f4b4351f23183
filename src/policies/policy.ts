/** A ValidatingAdmissionPolicy and how it is bound: evaluated by the API server itself, so no server of ours can be down. */
export type ValidatingPolicy = {
  name: string
  /** What is done with a request that a validation does not hold for. */
  validationActions: readonly ("Deny" | "Warn" | "Audit")[]
  spec: {
    failurePolicy: "Fail" | "Ignore"
    matchConstraints: { resourceRules: readonly ResourceRule[] }
    matchConditions?: readonly NamedExpression[]
    /** Evaluated when first used, in order: each may use those before it as `variables.NAME`. */
    variables: readonly NamedExpression[]
    validations: readonly Validation[]
  }
}

type NamedExpression = { name: string; expression: string }

type ResourceRule = {
  apiGroups: readonly string[]
  apiVersions: readonly string[]
  resources: readonly string[]
  operations: readonly ("CREATE" | "UPDATE" | "DELETE")[]
  scope: "Cluster" | "Namespaced"
}

type Validation = {
  expression: string
  reason: "Invalid" | "Forbidden"
  /** What is said where the expression below cannot be evaluated. */
  message: string
  messageExpression: string
}
