import { type Allowances, foresee, readAllowances } from "#egress/index.ts"
import type { Instant } from "#lib/instant.ts"
import { parseInstant } from "#lib/instant.ts"
import { clip } from "#lib/text.ts"
import type { WatchedCache } from "#runtime/cache/cache.ts"
import { type Condition, conditionOf, conditionWriter } from "#runtime/conditions.ts"
import type { Controller, Permission } from "#runtime/controller.ts"
import { type Held, kindController } from "#runtime/kind-controller.ts"
import { nameOf, type Resource } from "#runtime/resource.ts"
import type { Episode, WithStatus } from "#runtime/status.ts"
import { createSecrets, type SecretRead, type Secrets, secretPermissions } from "./secrets.ts"
import type { Surroundings } from "./surroundings.ts"

/** Whether objects may use what this one describes: `Usable`, or why a person must act. */
export type Judged = { readonly reason: string; readonly message: string }

/** Why an address cannot be used, as far as that shows without a connection. */
export type Unreachable = { readonly reason: "AddressForbidden" | "InvalidAddress"; readonly message: string }
export type Address = {
  readonly url: string
  readonly isUnchecked?: boolean
  readonly headers?: Readonly<Record<string, string | string[]>>
}

export type Seen<O> = {
  readonly object: O
  /** The Secret that it names; its content goes into no message. */
  readonly secret?: SecretRead | undefined
  unreachable(address: Address): Unreachable | undefined
}

type WithConditions = WithStatus & {
  status?: { observedGeneration: number; conditions: readonly Condition[] } | undefined
}

type Kind<O> = {
  readonly name: string
  readonly resource: Resource
  secretOf(object: O): string | undefined
  judge(seen: Seen<O>): Judged
}

type World<O> = {
  readonly secrets: Secrets
  readonly objects: WatchedCache<Held<O>>
  /** What the look that is under way has read, by key. */
  readonly read: Map<string, SecretRead>
}
type Plan = Judged & { readonly lookAgainAt?: Instant | undefined }

/** A Secret that cannot be used is read again after as long as it could not be; one that can be, to keep the status true. */
const againMs = { least: 15_000, most: 300_000, usable: 3_600_000 }

/**
 * The controller of a kind that others use and that does nothing by itself: its conditions say whether it can be used. It
 * reads the objects and, by name, the Secrets that they name; it writes their status and nothing else.
 */
export function usableController<O extends WithConditions>(kind: Kind<O>, surroundings: Surroundings): Controller {
  const allowances = readAllowances(surroundings.allowEgress ?? [])
  const permissions: readonly Permission[] = [
    { resource: kind.resource, verbs: ["list", "watch"] },
    { resource: kind.resource, subresource: "status", verbs: ["update"] },
    ...secretPermissions,
  ]
  return kindController<O, World<O>, undefined, Seen<O> & { now: Instant }, Plan, Record<string, never>>({
    name: kind.name,
    resource: kind.resource,
    permissions,
    concurrency: 2,
    turns: { of: key => nameOf(key).namespace ?? "", most: 1 },
    open: (wiring, objects) => ({ secrets: createSecrets(wiring), objects, read: new Map() }),
    async prepare({ objects, secrets, read }, key) {
      const object = objects.get(key)?.object
      const name = object && kind.secretOf(object)
      if (name === undefined) read.delete(key)
      else read.set(key, await secrets.read(object!.metadata.namespace ?? "", name))
      return true
    },
    observe: ({ read }, { key, object, now }) => ({
      object,
      secret: read.get(key),
      unreachable: address => unreachable(object.metadata.namespace ?? "", address, allowances),
      now,
    }),
    plan({ now, ...seen }) {
      const judged = kind.judge(seen)
      const { secret, object } = seen
      if (!secret) return judged
      if (judged.reason === "Usable") return { ...judged, lookAgainAt: now + againMs.usable }
      const since = parseInstant(conditionOf(object.status?.conditions, "Ready")?.lastTransitionTime) ?? now
      return { ...judged, lookAgainAt: now + Math.max(againMs.least, Math.min(againMs.most, now - since)) }
    },
    apply: async () => ({}),
    reports: "before",
    report: ({ object }, plan, _, now) => report(object, plan, now),
    forget: ({ read }, key) => void read.delete(key),
  })
}

export function unreachable(namespace: string, address: Address, allowances: Allowances): Unreachable | undefined {
  const seen = foresee({ namespace, ...address, allowances })
  if (seen.need === "Change") return { reason: "InvalidAddress", message: seen.why }
  if (seen.need === "None" || !seen.isCertain) return undefined
  return { reason: "AddressForbidden", message: `${seen.why}: an administrator may allow it with ${seen.flag}` }
}

function report<O extends WithConditions>({ metadata, status }: O, { reason, message }: Plan, now: Instant) {
  const { generation = 0 } = metadata
  const text = clip(message, 512)
  const state = conditionWriter<Condition>(generation, now)
  const isUsable = reason === "Usable"
  const before = conditionOf(status?.conditions, "Ready")
  const isNews = before ? before.reason !== reason : !isUsable
  const episodes: Episode[] = isNews ? [{ type: isUsable ? "Normal" : "Warning", reason, message: text }] : []
  return {
    status: {
      observedGeneration: generation,
      conditions: [
        state(status?.conditions, "Ready", isUsable, reason, text),
        state(status?.conditions, "Stalled", !isUsable, isUsable ? "NothingToDo" : reason, isUsable ? "" : text),
      ],
    },
    episodes,
  }
}
