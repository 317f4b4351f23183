/** Service accounts as users. */

const prefix = "system:serviceaccount:"

export const accountUser = (namespace: string, name: string) => `${prefix}${namespace}:${name}`

export const accountGroups = (namespace: string) => ["system:serviceaccounts", `system:serviceaccounts:${namespace}`]

const label = /^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$/
const subdomain = /^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$/

/** The account behind a user's name, or undefined for a user of another kind. */
export function accountOf(user: string): { namespace: string; name: string } | undefined {
  if (!user.startsWith(prefix)) return undefined
  const [namespace = "", name = "", ...more] = user.slice(prefix.length).split(":")
  return more.length === 0 && label.test(namespace) && subdomain.test(name) ? { namespace, name } : undefined
}

/** The node behind a user's name. */
export function nodeOf(user: string): string | undefined {
  const name = user.startsWith("system:node:") ? user.slice("system:node:".length) : ""
  return subdomain.test(name) ? name : undefined
}
