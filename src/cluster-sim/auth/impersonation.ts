import { badRequest, quote } from "../apiserver/refusals.ts"
import { refused } from "./attributes.ts"
import { accountGroups, accountOf, nodeOf } from "./service-account.ts"
import type { Attributes, Authorizer, User } from "./user.ts"

/** The user that the headers of a request ask to impersonate. */
export type Wanted = { name: string; uid: string; groups: string[]; extra: Record<string, string[]> }

const extraPrefix = "impersonate-extra-"

/** Joins several values of one header. A value may contain a comma, but never a line end. */
export const separator = "\n"

/** Undefined: the request impersonates no user. */
export function wantedUser(headers: Readonly<Record<string, string>>): Wanted | undefined {
  const values = (name: string) => (headers[name] === undefined ? [] : headers[name].split(separator))
  const wanted: Wanted = {
    name: values("impersonate-user")[0] ?? "",
    uid: values("impersonate-uid")[0] ?? "",
    groups: values("impersonate-group"),
    extra: {},
  }
  for (const header of Object.keys(headers))
    if (header.startsWith(extraPrefix)) wanted.extra[unescaped(header.slice(extraPrefix.length))] = values(header)
  if (wanted.name) return wanted
  if (wanted.uid || wanted.groups.length > 0 || Object.keys(wanted.extra).length > 0)
    throw badRequest(`requested ${inGo(wanted)} without impersonating a user name`)
  return undefined
}

function unescaped(text: string): string {
  try {
    return decodeURIComponent(text)
  } catch {
    return text
  }
}

/** As Go prints the struct. */
function inGo({ uid, groups, extra }: Wanted): string {
  const list = (words: readonly string[]) => `{${words.map(quote).join(", ")}}`
  const keys = Object.keys(extra).sort()
  const map = keys.map(key => `${quote(key)}:[]string${list(extra[key] ?? [])}`).join(", ")
  const groupsText = groups.length > 0 ? `[]string${list(groups)}` : "[]string(nil)"
  const extraText = keys.length > 0 ? `map[string][]string{${map}}` : "map[string][]string(nil)"
  return `&user.DefaultInfo{Name:"", UID:${quote(uid)}, Groups:${groupsText}, Extra:${extraText}}`
}

type Mode = { name: string; isFor(wanted: Wanted, requester: User): boolean }

const isOnlyName = ({ uid, groups, extra }: Wanted) => !uid && groups.length === 0 && Object.keys(extra).length === 0

/** Modes that allow impersonation only for certain actions. Tried in this order, before the mode without limits. */
const constrained: readonly Mode[] = [
  {
    name: "associated-node",
    isFor: (wanted, { name, extra }) =>
      isOnlyName(wanted) &&
      nodeOf(wanted.name) !== undefined &&
      accountOf(name) !== undefined &&
      extra?.["authentication.kubernetes.io/node-name"]?.[0] === nodeOf(wanted.name),
  },
  { name: "arbitrary-node", isFor: wanted => isOnlyName(wanted) && nodeOf(wanted.name) !== undefined },
  { name: "serviceaccount", isFor: wanted => isOnlyName(wanted) && accountOf(wanted.name) !== undefined },
  { name: "user-info", isFor: ({ name }) => nodeOf(name) === undefined && accountOf(name) === undefined },
]

const rememberedUsers = 10_000

/** Returns the impersonated user, or throws the first refusal if no mode allows it. */
export function createImpersonation(authorize: Authorizer) {
  /** The mode that a user was last allowed is tried first, so its refusal is the one that is reported. */
  const lastAllowed = new Map<string, Mode | undefined>()

  return (requester: User, wanted: Wanted, attributes: Attributes): User => {
    let first: unknown
    const check: Check = (asked, never) => {
      const { allowed, reason } = never ? { allowed: false, reason: never } : authorize(requester, asked)
      if (!allowed) throw refused(requester, asked, reason)
    }
    const all = [...constrained, undefined]
    const last = lastAllowed.has(requester.name) ? [lastAllowed.get(requester.name)] : []
    for (const mode of new Set([...last, ...all])) {
      if (mode && !mode.isFor(wanted, requester)) continue
      try {
        if (mode) check({ ...attributes, verb: `impersonate-on:${mode.name}:${attributes.verb}` })
        checkEach(check, wanted, mode?.name)
        if (lastAllowed.size >= rememberedUsers) lastAllowed.clear()
        lastAllowed.set(requester.name, mode)
        return become(wanted, mode !== undefined)
      } catch (error) {
        first ??= error
      }
    }
    throw first
  }
}

/** `never`: why it is refused whatever the roles allow. */
type Check = (asked: Attributes, never?: string | false) => void

const authentication = "authentication.k8s.io"

function checkEach(check: Check, { name, uid, groups, extra }: Wanted, mode: string | undefined) {
  const verb = mode ? `impersonate:${mode}` : "impersonate"
  const group = mode ? authentication : ""
  const account = accountOf(name)
  const node = mode ? nodeOf(name) : undefined
  if (account) check({ verb, group, resource: "serviceaccounts", ...account })
  else if (node !== undefined) check({ verb, group, resource: "nodes", name: mode === "associated-node" ? "*" : node })
  else check({ verb, group, resource: "users", name })
  if (uid) check({ verb, group: authentication, resource: "uids", name: uid })
  // Only the mode without limits may impersonate the group that may do everything.
  const isMasters = Boolean(mode) && groups.includes("system:masters")
  for (const each of isMasters ? ["system:masters"] : groups)
    check(
      { verb, group, resource: "groups", name: each },
      isMasters && "impersonating the system:masters group is not allowed",
    )
  for (const [key, values] of Object.entries(extra))
    for (const value of values)
      check({ verb, group: authentication, resource: "userextras", subresource: key, name: value })
}

function become({ name, uid, groups, extra }: Wanted, isConstrained: boolean): User {
  const account = accountOf(name)
  const own =
    groups.length > 0
      ? groups
      : account
        ? accountGroups(account.namespace)
        : isConstrained && nodeOf(name) !== undefined
          ? ["system:nodes"]
          : []
  const implied = name === "system:anonymous" ? "system:unauthenticated" : "system:authenticated"
  const isTold = own.includes(implied) || own.includes("system:unauthenticated")
  return {
    name,
    ...(uid && { uid }),
    groups: isTold ? own : [...own, implied],
    ...(Object.keys(extra).length > 0 && { extra }),
  }
}
