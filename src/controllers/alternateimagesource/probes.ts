import type { Keyring } from "#core/image/pull-secret.ts"
import { parseImageReference } from "#core/image/reference.ts"
import type { Instant } from "#lib/instant.ts"
import { createLimiter } from "#lib/limiter.ts"
import type { RegistryClient, Resolution } from "#registry/index.ts"
import type { Client } from "#runtime/client/client.ts"
import type { Clock } from "#runtime/clock.ts"
import { createQuestions, type Questions } from "#runtime/questions.ts"
import { type Asker, askAs, keyringsOf } from "./ask.ts"
import type { Probe } from "./group.ts"

type Deps = {
  client: Client
  clock: Clock
  registry: Pick<RegistryClient, "resolve"> | undefined
  /** Called for each answer, for metrics. */
  onAnswer?: (said: Resolution) => void
}

const rememberMs = 600_000
const probesMost = 10_000
/** How many Secrets and accounts are read at once. The client limits the questions to a registry. */
const readsAtOnce = { all: 16, owner: 4 }
/**
 * Credentials that were read this recently serve another question: one look has many, and so have the sources of a
 * namespace.
 */
const keysMs = 2000

type Keys = { keyrings: Keyring[]; isUnread: boolean }

/** Answers of registries, which are asked in the background. */
export class Probes {
  readonly #deps: Deps
  readonly #questions: Questions<Resolution>
  readonly #inTurn = createLimiter(readsAtOnce).run
  /** Credentials that are being read or were read a moment ago, by asker; the oldest come first. */
  readonly #keys = new Map<string, { at: Instant; keys: Promise<Keys> }>()

  constructor(deps: Deps) {
    this.#deps = deps
    const failed = (): Resolution => ({ ok: false, class: "Unreachable", message: "the credentials could not be read" })
    this.#questions = createQuestions({ clock: deps.clock, rememberMs, most: probesMost, failed })
  }

  get(asker: Asker, image: string): Probe | undefined {
    return this.#questions.get(keyOf(asker, image))
  }

  /** Whether any question is open. */
  get areOpen(): boolean {
    return this.#questions.areOpen
  }

  /** Asks, unless the same question is open, and calls back when there is an answer. */
  ask(asker: Asker, image: string, onDone: () => void): void {
    const question = async () => {
      const said = await this.#resolve(asker, image)
      this.#deps.onAnswer?.(said)
      return said
    }
    this.#questions.ask(keyOf(asker, image), question, onDone)
  }

  /** Drops answers obtained before a namespace's credentials were granted. */
  forget(namespace: string | undefined): void {
    const isConcerned = (key: string) => namespace === undefined || key.startsWith(`${namespace} `)
    this.#questions.forget(isConcerned)
    for (const key of [...this.#keys.keys()]) if (isConcerned(key)) this.#keys.delete(key)
  }

  async #resolve(asker: Asker, image: string): Promise<Resolution> {
    const { registry } = this.#deps
    const parsed = parseImageReference(image)
    if (!registry || !parsed.ok) return { ok: false, class: "ForbiddenAddress", message: "registries are not asked" }
    const { keyrings, isUnread } = await this.#keysOf(asker)
    const said = await askAs(registry, parsed.reference, keyrings, { tenant: asker.namespace })
    if (!isUnread || said.ok || said.class !== "Denied" || said.isFinal) return said
    // We cannot judge the pod's own credentials, so the pod may try.
    return { ok: false, class: "ForbiddenAddress", message: "its credentials may not be read" }
  }

  #keysOf(asker: Asker): Promise<Keys> {
    const now = this.#deps.clock.now()
    for (const [old, { at }] of this.#keys) {
      if (now - at < keysMs) break
      this.#keys.delete(old)
    }
    const name = nameOf(asker)
    const known = this.#keys.get(name)
    if (known) return known.keys
    const keys = this.#read(asker)
    this.#keys.set(name, { at: now, keys })
    keys.catch(() => {
      if (this.#keys.get(name)?.keys === keys) this.#keys.delete(name)
    })
    return keys
  }

  async #read(asker: Asker): Promise<Keys> {
    let isUnread = false
    const onUnread = () => {
      isUnread = true
    }
    const keyrings = await keyringsOf(this.#deps.client, asker, { onUnread, inTurn: this.#inTurn })
    return { keyrings, isUnread }
  }
}

/** Pods that pull with the same credentials have the same name. */
const nameOf = ({ namespace, secrets: names, account }: Asker) =>
  `${namespace} ${account} ${[...names].sort().join(",")}`

const keyOf = (asker: Asker, image: string) => `${nameOf(asker)} ${image}`
