import type { Problem } from "../queries.ts"

/** The header of a Secret's keys. A token comes before a user, as in Flagger. */
export function authorizationOf(credentials: ReadonlyMap<string, string> | undefined): string | Problem | undefined {
  if (!credentials) return undefined
  const token = credentials.get("token")?.trim()
  if (token) return `Bearer ${token}`
  const [username, password] = [credentials.get("username"), credentials.get("password")]
  if (username === undefined || password === undefined)
    return {
      reason: "SecretMissing",
      message: "the Secret of secretRef has neither the key token nor both username and password",
    }
  return `Basic ${Buffer.from(`${username}:${password}`).toString("base64")}`
}

/** Headers as the template has them, without those that are written in its place. Names have no case. */
export const headersWithout = (headers: Readonly<Record<string, string[]>> = {}, ...names: readonly string[]) =>
  Object.fromEntries(Object.entries(headers).filter(([name]) => !names.includes(name.toLowerCase())))
