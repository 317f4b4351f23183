import { createHash, timingSafeEqual } from "node:crypto"
import type { Clock } from "#runtime/clock.ts"
import type { Random } from "#runtime/random.ts"
import type { KindStorage } from "../apiserver/storage.ts"
import { StatusError } from "../status-error.ts"
import { refused } from "./attributes.ts"
import { createRbac, type Rbac } from "./authorizer.ts"
import { createImpersonation, wantedUser } from "./impersonation.ts"
import { createTokens, issuer, TokenRefused, type Tokens } from "./tokens.ts"
import { type Attributes, superuser, type User } from "./user.ts"

export type AuthOptions = {
  storage: KindStorage
  clock: Clock
  random: Random
  /** Bearer tokens with their users. */
  users?: Readonly<Record<string, User>> | undefined
  /** Signs the tokens of service accounts. Default: derived from the seed, which is no secret. */
  key?: string | undefined
}

export type Identified = { user: User; audiences: readonly string[] }

/** Authentication and authorization of one cluster. */
export type Auth = Rbac & {
  readonly tokens: Tokens
  /** The user of a token, and the audiences that it is valid for; throws `TokenRefused`. */
  identify(token: string, audiences?: readonly string[]): Identified
  /** Throws Forbidden. */
  require(user: User, attributes: Attributes): void
  /** The user of an authorized request: `fallback` without credentials. Throws Unauthorized or Forbidden. */
  admit(headers: Readonly<Record<string, string>>, attributes: () => Attributes, fallback: User): User
}

export const anonymous: User = { name: "system:anonymous", groups: ["system:unauthenticated"] }

export function createAuth({ storage, clock, random, users = {}, key }: AuthOptions): Auth {
  const rbac = createRbac(storage)
  const impersonate = createImpersonation(rbac.authorize)
  const tokens = createTokens({ storage, clock, random, key: key ?? "cluster-sim" })
  const known = Object.entries(users).map(([token, user]) => ({ digest: digest(token), user: authenticated(user) }))

  function identify(token: string, audiences: readonly string[] = [issuer]): Identified {
    const asked = digest(token)
    const found = known.find(each => timingSafeEqual(each.digest, asked))
    if (found) return { user: found.user, audiences }
    const account = tokens.userOf(token, audiences)
    if (!account) throw new TokenRefused()
    return account
  }

  function userOf({ authorization = "" }: Readonly<Record<string, string>>, fallback: User): User {
    const [, token] = /^bearer +(\S+)$/i.exec(authorization.trim()) ?? []
    if (token === undefined) return fallback
    try {
      return identify(token).user
    } catch (error) {
      if (error instanceof TokenRefused) throw new StatusError(401, "Unauthorized", "Unauthorized")
      throw error
    }
  }

  function require(user: User, attributes: Attributes) {
    const { allowed, reason } = rbac.authorize(user, attributes)
    if (!allowed) throw refused(user, attributes, reason)
  }

  return {
    ...rbac,
    tokens,
    identify,
    require,
    admit(headers, attributes, fallback) {
      const requester = headers.authorization === undefined ? fallback : userOf(headers, fallback)
      const wanted = isImpersonating(headers) ? wantedUser(headers) : undefined
      // In process and without credentials, as nearly every request of a test: no check is needed.
      if (requester === superuser && !wanted) return requester
      const asked = attributes()
      const user = wanted ? impersonate(requester, wanted, asked) : requester
      require(user, asked)
      return user
    },
  }
}

function isImpersonating(headers: Readonly<Record<string, string>>): boolean {
  for (const name in headers) if (name.startsWith("impersonate-")) return true
  return false
}

const digest = (text: string) => createHash("sha256").update(text).digest()

const authenticated = (user: User): User => ({
  ...user,
  groups: user.groups.includes("system:authenticated") ? user.groups : [...user.groups, "system:authenticated"],
})
