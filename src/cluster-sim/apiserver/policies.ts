import type { Json, Obj } from "../object.ts"
import type { ServedKind } from "./kind.ts"
import type { WriteOptions } from "./storage.ts"

/** A request as admission policies see it. */
export type PolicyRequest = {
  operation: "create" | "update" | "delete"
  kind: ServedKind
  /** As in the request: empty where the server generates one. */
  name: string
  namespace: string | undefined
  /** Undefined in a deletion. */
  object: Json
  /** Undefined in a creation. */
  old: Obj | undefined
  subresource: string | undefined
  options: Pick<
    WriteOptions,
    "asksNoPolicy" | "dryRun" | "fieldManager" | "namesManager" | "fieldValidation" | "user" | "warn"
  >
}

/** The admission policies that are in force. */
export type Policies = {
  /** Runs the server's own plugins, then mutating policies. Plugins run again if a policy changed the object. */
  mutate(request: PolicyRequest, plugins: (object: Json) => Json): Json
  /** Throws the refusal of the first validating policy that denies the request. */
  validate(request: PolicyRequest): void
}

export const noPolicies: Policies = { mutate: ({ object }, plugins) => plugins(object), validate() {} }
