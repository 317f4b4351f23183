import { readFile } from "node:fs/promises"
import type { Clock } from "../clock.ts"

/** Where an API server is and how to be known to it: all that is left of a kubeconfig once it is read. */
export type ServerConfig = {
  /** `https://host:port`, with a path below which the API lies where a proxy serves several clusters. */
  server: string
  /** Where the user works if nothing else is said. */
  namespace: string
  tls: { ca?: string; verify: boolean; serverName?: string }
  credentials: Credentials
  /** Sent with every request: whom to act as. */
  headers: Record<string, string | string[]>
}

export type Credential = { authorization?: string; cert?: string; key?: string }

export type Credentials = {
  current(): Promise<Credential>
  /** After a 401: other ones than those refused, if there are any to be had. */
  renew(refused: Credential): Promise<Credential | undefined>
}

/** The user has to change a file, a flag or the environment; the message says which and to what. */
export class ConfigError extends Error {
  override name = "ConfigError"
}

export const fixedCredentials = (credential: Credential): Credentials => ({
  current: async () => credential,
  renew: async () => undefined,
})

export const bearer = (token: string) => `Bearer ${token}`

/** Bound tokens are replaced at 80% of their life, an hour by default: a minute is early enough, and cheap. */
const tokenFreshMs = 60_000

/** The token in a file that something else keeps fresh. */
export function tokenFileCredentials(path: string, clock: Clock, others: Credential = {}): Credentials {
  let held: { credential: Credential; readAt: number } | undefined
  const read = async () => {
    const readAt = clock.monotonic()
    try {
      const token = (await readFile(path, "utf8")).trim()
      if (!token) throw new ConfigError(`${path} is empty: it must hold a bearer token`)
      const authorization = bearer(token)
      // The same object for the same token, so that `renew` can tell whether reading again helped.
      held = {
        credential: held?.credential.authorization === authorization ? held.credential : { ...others, authorization },
        readAt,
      }
    } catch (cause) {
      // A volume being swapped is empty for a moment; the old token is good for minutes yet.
      if (!held)
        throw cause instanceof ConfigError ? cause : new ConfigError(`${path}: cannot read the token`, { cause })
    }
    return held.credential
  }
  return {
    current: async () => (held && clock.monotonic() - held.readAt < tokenFreshMs ? held.credential : read()),
    async renew(refused) {
      const credential = await read()
      return credential.authorization === refused.authorization ? undefined : credential
    },
  }
}
