import { apiVersionOf } from "#runtime/resource.ts"
import type { ServedKind } from "../apiserver/kind.ts"
import type { PolicyRequest } from "../apiserver/policies.ts"
import { scaleOf, withScale } from "../apiserver/scale.ts"
import type { User } from "../auth/index.ts"
import type { Json } from "../object.ts"

/** A kind and a resource, as an admission request names them. */
type Group = { group: string; version: string }

/** A request as policies match and see it. */
export type Attributes = {
  readonly operation: "CREATE" | "UPDATE" | "DELETE"
  /** The kind that the request was sent to; for a scale, the kind that is scaled. */
  readonly served: ServedKind
  readonly kind: Group & { kind: string }
  readonly resource: Group & { resource: string }
  readonly subresource: string
  readonly name: string
  /** For a namespace its own name, as on the server. */
  readonly namespace: string
  /** Null in a deletion. */
  readonly object: Json
  /** Null in a creation. */
  readonly old: Json
  readonly user: User
  readonly isDryRun: boolean
  readonly options: Json
  readonly warn: (text: string) => void
}

export const isNamespaces = ({ group, plural }: ServedKind) => group === "" && plural === "namespaces"

const scale = { group: "autoscaling", version: "v1", kind: "Scale" }

export function attributesOf(request: PolicyRequest, user: User): Attributes {
  const { operation, kind: served, name, object = null, old = null, subresource = "", options } = request
  const { group, version, kind, plural } = served
  const isScale = subresource === "scale"
  return {
    operation: operation.toUpperCase() as Attributes["operation"],
    served,
    kind: isScale ? scale : { group, version, kind },
    resource: { group, version, resource: plural },
    subresource,
    name,
    namespace: isNamespaces(served) ? name : (request.namespace ?? ""),
    object: isScale && object ? scaleOf(served, object) : object,
    old: isScale && old ? scaleOf(served, old) : old,
    user,
    isDryRun: options.dryRun ?? false,
    options: optionsOf(request),
    warn: options.warn ?? (() => {}),
  }
}

const optionKinds = { create: "CreateOptions", update: "UpdateOptions", delete: "DeleteOptions" }

function optionsOf({ operation, options }: PolicyRequest): Json {
  const { dryRun, fieldManager, namesManager, fieldValidation } = options
  return {
    kind: optionKinds[operation],
    apiVersion: "meta.k8s.io/v1",
    ...(dryRun && { dryRun: ["All"] }),
    ...(operation !== "delete" && namesManager && { fieldManager }),
    ...(operation !== "delete" && fieldValidation && { fieldValidation }),
  }
}

/** The changed object of a request. For a Scale, it is the object that is scaled. */
export const withObject = (request: PolicyRequest, object: Json): Json =>
  request.subresource === "scale" ? withScale(request.kind, request.object, object) : object

/** An object as another version of its kind has it. */
export function converted(object: Json, from: ServedKind, to: ServedKind): Json {
  if (object === null || from === to) return object
  const stored = from.convert ? from.convert.toStorage(object) : object
  const shown = to.convert ? to.convert.fromStorage(stored) : stored
  return { ...shown, apiVersion: apiVersionOf(to), kind: to.kind }
}
