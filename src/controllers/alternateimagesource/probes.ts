import { normaliseImageReference, parseImageReference } from "#core/image-reference.ts"
import { credentialsFor, credentialsOf, type Keyring } from "#core/pull-secret.ts"
import type { RegistryClient, Resolution } from "#registry/index.ts"
import type { Client } from "#runtime/client/client.ts"
import { isFailure } from "#runtime/client/errors.ts"
import type { Clock } from "#runtime/clock.ts"
import type { KubeObject } from "#runtime/resource.ts"
import type { Probe } from "./decide.ts"
import type { PodFacts } from "./facts.ts"
import { secrets, serviceAccounts } from "./resources.ts"

/** With whose credentials a registry is asked: those the pod itself would pull with. */
export type Asker = Pick<PodFacts, "namespace" | "secrets" | "account">

type Deps = {
  client: Client
  clock: Clock
  registry: Pick<RegistryClient, "resolve"> | undefined
  /** Told of each answer, for metrics. */
  onAnswer?: (said: Resolution) => void
}

const rememberMs = 600_000
const probesMost = 10_000

/** What registries said, asked in the background: nobody waits for a slow one but who needs it. */
export class Probes {
  readonly #deps: Deps
  readonly #answers = new Map<string, Probe>()
  readonly #asking = new Set<string>()

  constructor(deps: Deps) {
    this.#deps = deps
  }

  get(asker: Asker, image: string): Probe | undefined {
    return this.#answers.get(keyOf(asker, image))
  }

  /** Asks, unless that is under way, and calls back when there is an answer. */
  ask(asker: Asker, image: string, onDone: () => void): void {
    const key = keyOf(asker, image)
    if (this.#asking.has(key)) return
    this.#asking.add(key)
    this.#resolve(asker, image)
      .then(said => {
        this.#remember(key, said)
        this.#deps.onAnswer?.(said)
      })
      .catch(() =>
        this.#remember(key, { ok: false, class: "Unreachable", message: "the credentials could not be read" }),
      )
      .finally(() => {
        this.#asking.delete(key)
        onDone()
      })
  }

  #remember(key: string, said: Resolution): void {
    const now = this.#deps.clock.now()
    this.#answers.delete(key) // so that what was asked last stands last
    this.#answers.set(key, { at: now, said })
    for (const [old, { at }] of this.#answers) {
      if (this.#answers.size <= probesMost && now - at < rememberMs) break
      this.#answers.delete(old)
    }
  }

  async #resolve(asker: Asker, image: string): Promise<Resolution> {
    const { registry } = this.#deps
    const parsed = parseImageReference(image)
    if (!registry || !parsed.ok) return { ok: false, class: "ForbiddenAddress", message: "registries are not asked" }
    const [first] = credentialsFor(parsed.reference, await this.#keyrings(asker))
    const { host } = normaliseImageReference(parsed.reference)
    return registry.resolve(parsed.reference, first ? { credentials: new Map([[host, first]]) } : {})
  }

  /** Read by name, where it was granted; a namespace that did not is asked for as anybody would. */
  async #keyrings({ namespace, secrets: own, account }: Asker): Promise<Keyring[]> {
    const found = await this.#read<KubeObject & { imagePullSecrets?: { name?: string }[] }>(
      serviceAccounts,
      namespace,
      account,
    )
    const ofAccount = (found?.imagePullSecrets ?? []).map(({ name = "" }) => name)
    const names = [...new Set([...own, ...ofAccount])].filter(Boolean).slice(0, 16)
    const read = await Promise.all(names.map(name => this.#read<Secret>(secrets, namespace, name)))
    return read.flatMap(secret => (secret ? [credentialsOf(secret)] : []))
  }

  async #read<T extends KubeObject>(resource: typeof secrets, namespace: string, name: string): Promise<T | undefined> {
    try {
      return await this.#deps.client.get<T>(resource, { namespace, name })
    } catch (error) {
      if (isFailure(error, "Forbidden", "NotFound")) return undefined
      throw error
    }
  }
}

type Secret = KubeObject & { type?: string; data?: Record<string, string> }

const keyOf = ({ namespace, secrets: names, account }: Asker, image: string) =>
  `${namespace} ${account} ${[...names].sort().join(",")} ${image}`
