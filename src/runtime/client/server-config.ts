import { readFile } from "node:fs/promises"
import type { LookupFunction } from "node:net"
import type { Clock } from "../clock.ts"

/** The address of an API server and the credentials for it: all that is left of a kubeconfig once it is read. */
export type ServerConfig = {
  /** `https://host:port`, with the path of the API where a proxy serves several clusters. */
  server: string
  /** The default namespace of the user. */
  namespace: string
  tls: { ca?: string; verify: boolean; serverName?: string }
  credentials: Credentials
  /** Finds the addresses of the server's name, where some must not be connected to. Default: the system's. */
  lookup?: LookupFunction
  /** Sent with every request: the user and groups to impersonate. */
  headers: Record<string, string | string[]>
}

export type Credential = { authorization?: string; cert?: string; key?: string }

export type Credentials = {
  current(): Promise<Credential>
  /** After a 401: other credentials than the refused ones, if there are any. */
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

/** The token in a file that another process keeps fresh. */
export function tokenFileCredentials(path: string, clock: Clock, others: Credential = {}): Credentials {
  let held: { credential: Credential; readAt: number } | undefined
  const read = async () => {
    const readAt = clock.monotonic()
    try {
      const token = (await readFile(path, "utf8")).trim()
      if (!token) throw new ConfigError(`${path} is empty: it must hold a bearer token`)
      const authorization = bearer(token)
      // The same object for the same token, so that `renew` can see whether reading again helped.
      held = {
        credential: held?.credential.authorization === authorization ? held.credential : { ...others, authorization },
        readAt,
      }
    } catch (cause) {
      // A volume being swapped is empty for a moment; the old token stays valid for minutes.
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
