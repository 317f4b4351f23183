import type { Keyring } from "#core/image/pull-secret.ts"
import { parseImageReference } from "#core/image/reference.ts"
import type { Instant } from "#lib/instant.ts"
import { createTurns } from "#lib/turns.ts"
import type { RegistryClient, Resolution } from "#registry/index.ts"
import type { Client } from "#runtime/client/client.ts"
import type { Clock } from "#runtime/clock.ts"
import { type Asker, askAs, keyringsOf } from "./ask.ts"
import type { Probe } from "./decide.ts"

type Deps = {
  client: Client
  clock: Clock
  registry: Pick<RegistryClient, "resolve"> | undefined
  /** Told of each answer, for metrics. */
  onAnswer?: (said: Resolution) => void
}

const rememberMs = 600_000
const probesMost = 10_000
/** Secrets and accounts that are read at once; how many questions a registry has at once is the client's to say. */
const readsAtOnce = { all: 16, owner: 4 }
/** What was read this long ago serves another question: one look has many, and so have the sources of a namespace. */
const keysMs = 2000

type Keys = { keyrings: Keyring[]; isUnread: boolean }

/** What registries said, asked in the background: nobody waits for a slow one but who needs it. */
export class Probes {
  readonly #deps: Deps
  readonly #answers = new Map<string, Probe>()
  /** Open questions, and whom to tell. */
  readonly #asking = new Map<string, Set<() => void>>()
  readonly #inTurn = createTurns(readsAtOnce)
  /** Credentials that are being read or were a moment ago, by their asker; those that are oldest stand first. */
  readonly #keys = new Map<string, { at: Instant; keys: Promise<Keys> }>()

  constructor(deps: Deps) {
    this.#deps = deps
  }

  get(asker: Asker, image: string): Probe | undefined {
    return this.#answers.get(keyOf(asker, image))
  }

  /** Whether any question is open. */
  get areOpen(): boolean {
    return this.#asking.size > 0
  }

  /** Asks, unless that is under way, and calls back everybody who asked when there is an answer. */
  ask(asker: Asker, image: string, onDone: () => void): void {
    const key = keyOf(asker, image)
    const open = this.#asking.get(key)
    if (open) {
      open.add(onDone)
      return
    }
    const waiting = new Set([onDone])
    this.#asking.set(key, waiting)
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
        for (const tell of waiting) tell()
      })
  }

  /** What was said to who could not show a namespace's credentials, before it let him read them. */
  forget(namespace: string | undefined): void {
    for (const key of [...this.#answers.keys()])
      if (namespace === undefined || key.startsWith(`${namespace} `)) this.#answers.delete(key)
    for (const key of [...this.#keys.keys()])
      if (namespace === undefined || key.startsWith(`${namespace} `)) this.#keys.delete(key)
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
    const { keyrings, isUnread } = await this.#keysOf(asker)
    const said = await askAs(registry, parsed.reference, keyrings, { tenant: asker.namespace })
    if (!isUnread || said.ok || said.class !== "Denied" || said.isFinal) return said
    // What the pod's own credentials are worth is not for us to say: the pod may try.
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
