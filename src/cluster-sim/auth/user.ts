/** The identity behind a request, as authentication found it; `request.userInfo` of admission. */
export type User = {
  readonly name: string
  readonly uid?: string
  readonly groups: readonly string[]
  readonly extra?: Readonly<Record<string, readonly string[]>>
}

/** What a request wants to do. A path is set for requests outside the API's resources and excludes the other fields. */
export type Attributes = {
  /** As Kubernetes names it: get, list, watch, create, update, patch, delete, deletecollection; of a path in lower case. */
  readonly verb: string
  readonly group?: string
  readonly version?: string
  /** The plural. */
  readonly resource?: string
  readonly subresource?: string
  readonly namespace?: string
  readonly name?: string
  readonly path?: string
}

/** A reason is there for what is allowed; for what is not, it is empty or names roles that do not exist. */
export type Verdict = { readonly allowed: boolean; readonly reason: string }

export type Authorizer = (user: User, attributes: Attributes) => Verdict

/** The user of a transport in this process without credentials: allowed everything, as on a real server's own loopback. */
export const superuser: User = { name: "system:admin", groups: ["system:masters", "system:authenticated"] }

/** May do everything, whatever roles and bindings exist. */
export const isSuperuser = ({ groups }: User) => groups.includes("system:masters")
