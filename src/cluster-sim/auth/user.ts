/** The identity behind a request, as authentication found it; `request.userInfo` of admission. */
export type User = {
  readonly name: string
  readonly uid?: string
  readonly groups: readonly string[]
  readonly extra?: Readonly<Record<string, readonly string[]>>
}

/** What a request asks for. A path is set for requests outside the API's resources and excludes the other fields. */
export type Attributes = {
  /** get, list, watch, create, update, patch, delete, deletecollection; for a path, the HTTP method in lower case. */
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

/** If allowed, the reason is set. If not, the reason is empty or names roles that do not exist. */
export type Verdict = { readonly allowed: boolean; readonly reason: string }

export type Authorizer = (user: User, attributes: Attributes) => Verdict

/** The user of requests in this process without credentials. It may do everything, as on a real server's loopback. */
export const superuser: User = { name: "system:admin", groups: ["system:masters", "system:authenticated"] }

/** May do everything, whatever roles and bindings exist. */
export const isSuperuser = ({ groups }: User) => groups.includes("system:masters")
