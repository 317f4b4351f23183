import type { Instant } from "#lib/instant.ts"
import { createLimiter } from "#lib/limiter.ts"
import type { Client } from "#runtime/client/client.ts"
import { isFailure } from "#runtime/client/errors.ts"
import type { Clock } from "#runtime/clock.ts"
import type { Permission } from "#runtime/controller.ts"
import { core, type KubeObject } from "#runtime/resource.ts"

export type SecretRead =
  | { readonly ok: true; readonly keys: ReadonlyMap<string, Buffer> }
  | { readonly ok: false; readonly reason: "SecretMissing" | "Forbidden"; readonly message: string }

/** Secrets that objects name, of their own namespace. */
export type Secrets = { read(namespace: string, name: string): Promise<SecretRead> }

const secrets = core("secrets", "Secret")

/** By name, and only where a namespace has granted it: no printed role has this. */
export const secretPermissions: readonly Permission[] = [{ resource: secrets, verbs: ["get"] }]

/** Secrets read this recently serve another question: one round of a Canary has many. */
const rememberMs = 5000
const readsAtOnce = { all: 16, owner: 4, waiting: 256 }

type Secret = KubeObject & { data?: Record<string, string> }

/** Rejects where the API server cannot be asked; every other outcome is a value. */
export function createSecrets({ client, clock }: { client: Pick<Client, "get">; clock: Pick<Clock, "now"> }): Secrets {
  const inTurn = createLimiter(readsAtOnce).run
  /** The oldest come first. */
  const known = new Map<string, { at: Instant; read: Promise<SecretRead> }>()

  async function read(namespace: string, name: string): Promise<SecretRead> {
    try {
      const { data = {} } = await inTurn({ owner: namespace }, () => client.get<Secret>(secrets, { namespace, name }))
      return { ok: true, keys: new Map(Object.entries(data).map(([key, text]) => [key, Buffer.from(text, "base64")])) }
    } catch (error) {
      if (isFailure(error, "NotFound"))
        return {
          ok: false,
          reason: "SecretMissing",
          message: `Secret ${name} does not exist in ${namespace}: create it, or correct secretRef`,
        }
      if (!isFailure(error, "Forbidden")) throw error
      const message = `aim may not read Secret ${name}: run aim grant ${namespace} --secrets ${name}`
      return { ok: false, reason: "Forbidden", message }
    }
  }

  return {
    read(namespace, name) {
      const now = clock.now()
      for (const [old, { at }] of known) {
        if (now - at < rememberMs) break
        known.delete(old)
      }
      const key = `${namespace}/${name}`
      const before = known.get(key)
      if (before) return before.read
      const reading = read(namespace, name)
      known.set(key, { at: now, read: reading })
      reading.catch(() => {
        if (known.get(key)?.read === reading) known.delete(key)
      })
      return reading
    },
  }
}
