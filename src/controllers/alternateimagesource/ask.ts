import { credentialsFor, credentialsOf, type Keyring } from "#core/image/pull-secret.ts"
import { type ImageReference, normaliseImageReference } from "#core/image/reference.ts"
import type { Limiter } from "#lib/limiter.ts"
import type { RegistryClient, Resolution, ResolveOptions } from "#registry/index.ts"
import type { Client } from "#runtime/client/client.ts"
import { isFailure } from "#runtime/client/errors.ts"
import type { KubeObject } from "#runtime/resource.ts"
import type { PodFacts } from "./facts.ts"
import { secrets, serviceAccounts } from "./resources.ts"

/** The credentials that a registry is asked with: those the pod itself would pull with. */
export type Asker = Pick<PodFacts, "namespace" | "secrets" | "account">

type Secret = KubeObject & { type?: string; data?: Record<string, string> }
type Account = KubeObject & { imagePullSecrets?: { name?: string }[] }

const secretsMost = 16
/** The kubelet tries all credentials that fit; more than this for one host are not expected. */
const triesMost = 4

export type Reading = {
  /** Called with the name of each object that may not be read. */
  onUnread?: (name: string) => void
  /** Limits how many reads are made at once, where many askers are read. */
  inTurn?: Limiter["run"]
}

/**
 * Reads the credentials by name. Secrets that may not be read are left out; without any, the registry is asked
 * anonymously.
 */
export async function keyringsOf(
  client: Client,
  { namespace, secrets: own, account }: Asker,
  { onUnread = () => {}, inTurn = (_, work) => work() }: Reading = {},
): Promise<Keyring[]> {
  const read = async <T extends KubeObject>(resource: typeof secrets, name: string): Promise<T | undefined> => {
    try {
      return await inTurn({ owner: namespace }, () => client.get<T>(resource, { namespace, name }))
    } catch (error) {
      if (!isFailure(error, "Forbidden", "NotFound")) throw error
      if (isFailure(error, "Forbidden")) onUnread(`${resource.kind} ${name}`)
      return undefined
    }
  }
  const ofAccount = ((await read<Account>(serviceAccounts, account))?.imagePullSecrets ?? []).map(
    ({ name = "" }) => name,
  )
  const names = [...new Set([...own, ...ofAccount])].filter(Boolean).slice(0, secretsMost)
  const found = await Promise.all(names.map(name => read<Secret>(secrets, name)))
  return found.flatMap(secret => (secret ? [credentialsOf(secret)] : []))
}

/** Asks a registry as the kubelet would: with each of the credentials that fit, until one is accepted. */
export async function askAs(
  registry: Pick<RegistryClient, "resolve">,
  reference: ImageReference,
  keyrings: readonly Keyring[],
  options: Pick<ResolveOptions, "platforms" | "signal" | "tenant"> = {},
): Promise<Resolution> {
  const { host } = normaliseImageReference(reference)
  const [first, ...others] = credentialsFor(reference, keyrings).slice(0, triesMost)
  let said = await registry.resolve(reference, { ...options, ...(first && { credentials: new Map([[host, first]]) }) })
  for (const credentials of others) {
    if (said.ok || said.class !== "Denied" || said.isFinal) break
    said = await registry.resolve(reference, { ...options, credentials: new Map([[host, credentials]]) })
  }
  if (!said.ok || reference.digest !== undefined || options.platforms) return said
  // A proxy may remember a tag whose image it no longer has. Nodes pull by digest, so the digest is asked for too.
  const whole = await askAs(registry, { ...reference, digest: said.digest }, keyrings, options)
  return whole.ok ? said : whole
}
