import type { ImagePullJob } from "#api/v1alpha1/imagepulljob/index.ts"
import { credentialsFor, credentialsOf } from "#core/image/pull-secret.ts"
import { parseImageReference } from "#core/image/reference.ts"
import type { Instant } from "#lib/instant.ts"
import type { Client } from "#runtime/client/client.ts"
import { isFailure } from "#runtime/client/errors.ts"
import { type KubeObject, keyOf } from "#runtime/resource.ts"
import type { Credentials } from "../pulls.ts"
import { secrets } from "./resources.ts"

type Secret = KubeObject & { type?: string; data?: Record<string, string> }

/** Credentials that were read this recently serve the next nodes too. A bad Secret is read again sooner. */
const rememberMs = 300_000
const badSecretMs = 15_000
/** The kubelet tries all credentials that fit; more than this for one host are not expected. */
const accountsMost = 4
const typesThatFit = new Set(["kubernetes.io/dockerconfigjson", "kubernetes.io/dockercfg"])
/** With room for the sealing: what is longer does not fit into a NodeImage. */
const sealedMost = 16_384

/** The credentials of each job, read by name while it needs them and forgotten with it. */
export class JobCredentials {
  readonly #client: Client
  readonly #known = new Map<string, { id: string; at: Instant; credentials: Credentials }>()

  constructor(client: Client) {
    this.#client = client
  }

  get(key: string): Credentials {
    return this.#known.get(key)?.credentials ?? { is: "None" }
  }

  forget(key: string): void {
    this.#known.delete(key)
  }

  /** A grant has changed: what could not be read may be readable now. */
  forgetBad(key: string): void {
    if (this.get(key).is === "Bad") this.#known.delete(key)
  }

  async refresh(job: ImagePullJob, now: Instant): Promise<void> {
    const key = keyOf(job.metadata)
    const { image, pullSecrets } = job.spec
    if (pullSecrets.length === 0) return this.forget(key)
    const id = `${job.metadata.uid} ${image} ${pullSecrets.join(",")}`
    const known = this.#known.get(key)
    const lastsMs = known?.credentials.is === "Bad" ? badSecretMs : rememberMs
    if (known?.id === id && now - known.at < lastsMs) return
    this.#known.set(key, { id, at: now, credentials: await this.#read(job) })
  }

  async #read({ metadata: { namespace = "" }, spec: { image, pullSecrets } }: ImagePullJob): Promise<Credentials> {
    const parsed = parseImageReference(image)
    if (!parsed.ok) return { is: "None" }
    const found: Secret[] = []
    for (const name of pullSecrets) {
      const secret = await this.#get(namespace, name)
      if ("is" in secret) return secret
      if (!typesThatFit.has(secret.type ?? "")) {
        const message = `Secret ${name} is of type ${secret.type}: write one of type kubernetes.io/dockerconfigjson`
        return { is: "Bad", reason: "SecretInvalid", message }
      }
      found.push(secret)
    }
    const accounts = credentialsFor(parsed.reference, found.map(credentialsOf)).slice(0, accountsMost)
    if (JSON.stringify(accounts).length > sealedMost)
      return { is: "Bad", reason: "SecretInvalid", message: `the credentials for ${image} are longer than 16 kB` }
    return { is: "Found", accounts }
  }

  async #get(namespace: string, name: string): Promise<Secret | (Credentials & { is: "Bad" })> {
    try {
      return await this.#client.get<Secret>(secrets, { namespace, name })
    } catch (error) {
      if (isFailure(error, "NotFound")) {
        const message = `Secret ${name} does not exist in ${namespace}: create it, or correct pullSecrets`
        return { is: "Bad", reason: "SecretMissing", message }
      }
      if (!isFailure(error, "Forbidden")) throw error
      const message = `aim may not read Secret ${name}: run aim grant ${namespace} --pull-secrets ${name}`
      return { is: "Bad", reason: "Forbidden", message }
    }
  }
}
