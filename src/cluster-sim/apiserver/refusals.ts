import { resourceName } from "#runtime/resource.ts"
import { type Cause, StatusError } from "../status-error.ts"
import type { ServedKind } from "./kind.ts"

/** The API server's refusals, in its words. */

type About = Pick<ServedKind, "group" | "plural">

const details = ({ group, plural }: About, name?: string) => ({
  ...(name && { name }),
  ...(group && { group }),
  kind: plural,
})

export const notFound = (kind: About, name: string) =>
  new StatusError(404, "NotFound", `${resourceName(kind)} ${quote(name)} not found`, details(kind, name))

export const alreadyExists = (kind: About, name: string, isGoing: boolean) =>
  new StatusError(
    409,
    "AlreadyExists",
    `${isGoing ? "object is being deleted: " : ""}${resourceName(kind)} ${quote(name)} already exists`,
    details(kind, name),
  )

export const generatedNameTaken = (kind: About, name: string) =>
  new StatusError(
    409,
    "AlreadyExists",
    `${resourceName(kind)} ${quote(name)} already exists, the server was not able to generate a unique name for the object`,
    { ...details(kind, name), retryAfterSeconds: 1 },
  )

export const conflict = (kind: About, name: string, why: string) =>
  new StatusError(
    409,
    "Conflict",
    `Operation cannot be fulfilled on ${resourceName(kind)} ${quote(name)}: ${why}`,
    details(kind, name),
  )

export const modifiedMeanwhile = (kind: About, name: string) =>
  conflict(kind, name, "the object has been modified; please apply your changes to the latest version and try again")

export const forbidden = (kind: About, name: string, why: string, causes?: Cause[]) =>
  new StatusError(
    403,
    "Forbidden",
    name ? `${resourceName(kind)} ${quote(name)} is forbidden: ${why}` : `${resourceName(kind)} is forbidden: ${why}`,
    { ...details(kind, name), ...(causes && { causes }) },
  )

export const badRequest = (message: string) => new StatusError(400, "BadRequest", message)

export const methodNotAllowed = (message = "the server does not allow this method on the requested resource") =>
  new StatusError(405, "MethodNotAllowed", message, {})

export const expired = (message: string) => new StatusError(410, "Expired", message)

/** `Deployment.apps "web" is invalid: [spec.a: Required value, spec.b: …]`; a single cause has no brackets. */
export function invalid(kind: { group: string; kind: string }, name: string, found: Cause[]): StatusError {
  const causes = found.map(each => (each.field === "" ? { ...each, field: "[]" } : each)) // as Go writes an empty path
  const messages = [...new Set(causes.map(({ field, message }) => `${field}: ${message}`))]
  const all = messages.length === 1 ? messages[0] : `[${messages.join(", ")}]`
  const what = kind.group ? `${kind.kind}.${kind.group}` : kind.kind
  return new StatusError(422, "Invalid", `${what} ${quote(name)} is invalid${messages.length > 0 ? `: ${all}` : ""}`, {
    ...(name && { name }),
    ...(kind.group && { group: kind.group }),
    ...(kind.kind && { kind: kind.kind }),
    causes,
  })
}

/** As Go's %q writes it. */
export const quote = (text: string) => JSON.stringify(text)

export const cause = {
  invalid: (field: string, value: unknown, why: string): Cause => ({
    reason: "FieldValueInvalid",
    message: `Invalid value: ${JSON.stringify(value) ?? "null"}: ${why}`,
    field,
  }),
  required: (field: string, why = ""): Cause => ({
    reason: "FieldValueRequired",
    message: why ? `Required value: ${why}` : "Required value",
    field,
  }),
  forbidden: (field: string, why: string): Cause => ({
    reason: "FieldValueForbidden",
    message: `Forbidden: ${why}`,
    field,
  }),
  notSupported: (field: string, value: string, supported: readonly string[]): Cause => ({
    reason: "FieldValueNotSupported",
    message: `Unsupported value: ${quote(value)}: supported values: ${supported.map(quote).join(", ")}`,
    field,
  }),
  tooLong: (field: string, max: number): Cause => ({
    reason: "FieldValueTooLong",
    message: `Too long: may not be more than ${max} bytes`,
    field,
  }),
}
