import type { Admission } from "../apiserver/backend.ts"
import { equal } from "../apiserver/equal.ts"
import type { ServedKind } from "../apiserver/kind.ts"
import { forbidden, notFound, quote } from "../apiserver/refusals.ts"
import type { Json } from "../object.ts"
import { StatusError } from "../status-error.ts"
import type { Rbac, RoleReference } from "./authorizer.ts"
import { fullAuthority, missingRights, quotedList, type Rule } from "./rules.ts"
import { isSuperuser, type User } from "./user.ts"

const group = "rbac.authorization.k8s.io"

/** Refuses roles and bindings that grant more rights than their writer has. */
export function escalationCheck({ authorize, rulesOf, rulesIn }: Rbac): Admission {
  function refuseMore(user: User, namespace: string, wanted: readonly Rule[]): string | undefined {
    const { rules, troubles } = rulesOf(user, namespace)
    const missing = missingRights(rules, wanted)
    if (missing.length === 0) return undefined
    const errors = troubles.length > 0 ? `; resolution errors: [${troubles.join(" ")}]` : ""
    const writer = `user ${quote(user.name)} (groups=${quotedList(user.groups)})`
    return `${writer} is attempting to grant RBAC permissions not currently held:\n${missing.join("\n")}${errors}`
  }

  /** A missing role is reported as if the binding were missing. */
  function rulesFor(reference: RoleReference, namespace: string, kind: ServedKind): readonly Rule[] {
    try {
      return rulesIn(reference, namespace)
    } catch (error) {
      if (error instanceof StatusError && error.code === 404) throw notFound(kind, reference.name ?? "")
      throw error
    }
  }

  return ({ operation, kind, object, old, user }) => {
    if (kind.group !== group || !user || isSuperuser(user)) return object
    if (old && equal(withoutLinks(object), withoutLinks(old))) return object
    const { namespace = "", name = "" } = object.metadata
    const isBinding = kind.plural === "rolebindings" || kind.plural === "clusterrolebindings"
    if (isBinding) {
      const { kind: role, name: of, apiGroup } = object.roleRef ?? {}
      const resource = role === "ClusterRole" ? "clusterroles" : "roles"
      const bind = { verb: "bind", group: apiGroup ?? "", resource, namespace, name: of ?? "" }
      if (authorize(user, bind).allowed) return object
      const why = refuseMore(user, namespace, rulesFor(object.roleRef ?? {}, namespace, kind))
      if (why) throw forbidden(kind, name, why)
      return object
    }
    // A create has no name in its path, so no rule can be limited to that name.
    const escalate = { verb: "escalate", group, resource: kind.plural, namespace }
    if (authorize(user, operation === "create" ? escalate : { ...escalate, name }).allowed) return object
    const why = refuseMore(user, namespace, object.rules ?? [])
    if (why) throw forbidden(kind, name, why)
    // An aggregated role may receive any rule later.
    if ((aggregates(object) || aggregates(old)) && refuseMore(user, namespace, fullAuthority))
      throw forbidden(kind, name, "must have cluster-admin privileges to use the aggregationRule")
    return object
  }
}

const aggregates = (role: Json) => (role?.aggregationRule?.clusterRoleSelectors ?? []).length > 0

/** Without the metadata that the garbage collector must be able to write in order to delete the object. */
const withoutLinks = ({ metadata, ...rest }: Json): Json => {
  const { ownerReferences: _, finalizers: __, managedFields: ___, ...kept } = metadata
  return { ...rest, metadata: kept }
}
