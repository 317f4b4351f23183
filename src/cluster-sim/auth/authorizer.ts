import { notFound, quote } from "../apiserver/refusals.ts"
import type { KindStorage } from "../apiserver/storage.ts"
import type { Json, Obj } from "../object.ts"
import { StatusError } from "../status-error.ts"
import { allows, type Rule } from "./rules.ts"
import { type Authorizer, isSuperuser, type User } from "./user.ts"

export type RoleReference = { kind?: string; name?: string }

/** RBAC over the roles and bindings of a storage. */
export type Rbac = {
  readonly authorize: Authorizer
  /** All rules that bindings give a user in a namespace ("": only cluster-wide), and the problems of bindings. */
  rulesOf(user: User, namespace: string): { rules: readonly Rule[]; troubles: readonly string[] }
  /** The rules of a role; throws NotFound. */
  rulesIn(reference: RoleReference, namespace: string): readonly Rule[]
}

const group = "rbac.authorization.k8s.io"
const apiVersion = `${group}/v1`

export function createRbac(storage: KindStorage): Rbac {
  let index: BindingIndex | undefined

  function rulesIn({ kind = "", name = "" }: RoleReference, namespace: string): readonly Rule[] {
    const served = kind === "Role" || kind === "ClusterRole" ? storage.kind(apiVersion, kind) : undefined
    if (!served) throw new StatusError(500, "", `unsupported role reference kind: ${quote(kind)}`)
    const role = storage.find(served, kind === "Role" ? { namespace, name } : { name })
    // The server's cache names it by its singular.
    if (!role) throw notFound({ group, plural: served.singular }, name)
    return role.rules ?? []
  }

  /** Calls `see` with each binding that applies and its rules, until `see` returns true. */
  function visit(user: User, namespace: string, see: (binding: Obj, rules: readonly Rule[]) => boolean): string[] {
    index ??= indexBindings(storage)
    const troubles: string[] = []
    for (const binding of index.of(user, namespace)) {
      try {
        if (see(binding, rulesIn(binding.roleRef, namespace))) return []
      } catch (error) {
        if (!(error instanceof StatusError)) throw error
        troubles.push(error.message)
      }
    }
    return troubles
  }

  return {
    rulesIn,
    rulesOf(user, namespace) {
      const rules: Rule[] = []
      const troubles = visit(user, namespace, (_, some) => {
        rules.push(...some)
        return false
      })
      return { rules, troubles }
    },
    authorize(user, attributes) {
      if (isSuperuser(user)) return { allowed: true, reason: "" }
      const { namespace = "" } = attributes
      let source: Obj | undefined
      const troubles = visit(user, namespace, (binding, rules) => {
        if (!rules.some(rule => allows(rule, attributes))) return false
        source = binding
        return true
      })
      if (source) return { allowed: true, reason: `RBAC: allowed by ${described(source, user)}` }
      return { allowed: false, reason: troubles.length > 0 ? `RBAC: ${aggregated(troubles)}` : "" }
    },
  }
}

/** Errors as Go aggregates them: each once, in brackets if there are several. */
export function aggregated(messages: readonly string[]): string {
  const distinct = [...new Set(messages)]
  return distinct.length === 1 ? (distinct[0] ?? "") : `[${distinct.join(", ")}]`
}

const accountName = ({ name, namespace }: Json, home: string) => `system:serviceaccount:${namespace || home}:${name}`

function described({ kind, metadata, roleRef, subjects }: Obj, user: User): string {
  const { name, namespace = "" } = metadata
  const subject = (subjects ?? []).find((each: Json) => keysOf(user).includes(keyOf(each, namespace)))
  const to = subject.kind === "ServiceAccount" ? `${subject.name}/${subject.namespace || namespace}` : subject.name
  const binding = namespace ? `${name}/${namespace}` : name
  return `${kind} ${quote(binding)} of ${roleRef.kind} ${quote(roleRef.name)} to ${subject.kind} ${quote(to)}`
}

const keyOf = (subject: Json, home: string): string =>
  subject.kind === "ServiceAccount" ? `User ${accountName(subject, home)}` : `${subject.kind} ${subject.name}`

const keysOf = ({ name, groups }: User) => [`User ${name}`, ...groups.map(each => `Group ${each}`)]

type BindingIndex = { of(user: User, namespace: string): Iterable<Obj> }

/** Bindings by namespace and subject, updated with each change, so that a request reads only those of its user. */
function indexBindings(storage: KindStorage): BindingIndex {
  const byPlace = new Map<string, Map<string, Obj>>()
  const places = ({ metadata: { namespace = "" }, subjects }: Obj): Set<string> =>
    new Set((subjects ?? []).map((subject: Json) => `${namespace}\n${keyOf(subject, namespace)}`))
  const forget = (binding: Obj) => {
    for (const place of places(binding)) {
      const known = byPlace.get(place)
      known?.delete(binding.metadata.name)
      if (known?.size === 0) byPlace.delete(place)
    }
  }
  const remember = (binding: Obj) => {
    for (const place of places(binding)) {
      const known = byPlace.get(place) ?? new Map<string, Obj>()
      byPlace.set(place, known.set(binding.metadata.name, binding))
    }
  }
  for (const kind of ["ClusterRoleBinding", "RoleBinding"]) {
    const served = storage.kind(apiVersion, kind)
    if (!served) continue
    for (const binding of storage.list(served).items) remember(binding)
    storage.subscribe(served, ({ type, object, before }) => {
      if (before) forget(before)
      if (type !== "DELETED") remember(object)
    })
  }
  return {
    of(user, namespace) {
      const found = new Set<Obj>()
      const keys = keysOf(user)
      for (const home of namespace ? ["", namespace] : [""])
        for (const key of keys) for (const binding of byPlace.get(`${home}\n${key}`)?.values() ?? []) found.add(binding)
      return found
    },
  }
}
