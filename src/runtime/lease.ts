import assert from "node:assert/strict"
import type { Client } from "./client/client.ts"
import { isFailure, KubeError } from "./client/errors.ts"
import type { Clock } from "./clock.ts"
import type { Permission } from "./controller.ts"
import type { KubeObject, Resource } from "./resource.ts"

const leases: Resource = {
  group: "coordination.k8s.io",
  version: "v1",
  plural: "leases",
  kind: "Lease",
  namespaced: true,
}

/** The permissions for an election, in the namespace of the Lease. */
export const electionPermissions: readonly Permission[] = [
  { resource: leases, verbs: ["get", "create", "update"] },
] as const

export type Lease = KubeObject & {
  spec?: {
    holderIdentity?: string
    leaseDurationSeconds?: number
    acquireTime?: string
    renewTime?: string
    leaseTransitions?: number
  }
}

export type LeaseSpec = NonNullable<Lease["spec"]>

/** The Lease as last seen, and since when (monotonic) it is unchanged. */
export type SeenLease = { lease: Lease; at: number }

export const holderOf = (lease: Lease) => lease.spec?.holderIdentity || undefined

export const wholeSeconds = (ms: number) => Math.max(2, Math.ceil(ms / 1000)) // 1 s means released

/** The time (monotonic) from which this identity may take the Lease. */
export function freeAt({ lease, at }: SeenLease, { identity, leaseMs }: { identity: string; leaseMs: number }): number {
  const { leaseDurationSeconds } = lease.spec ?? {}
  if (holderOf(lease) === identity) return at // taken by a request of ours whose answer was lost or late
  if (!holderOf(lease) && leaseDurationSeconds === 1) return at // released by a holder that had stopped
  return at + (leaseDurationSeconds && leaseDurationSeconds > 1 ? leaseDurationSeconds * 1000 : leaseMs)
}

export type LeaseAccess = {
  /** Undefined where there is none. */
  read(): Promise<Lease | undefined>
  /** Creates the Lease without a holder. Undefined if another process was faster. */
  found(leaseMs: number): Promise<Lease | undefined>
  /**
   * Replaces exactly this version of the Lease; undefined if it is gone. The metadata include the uid: without it, the
   * server would create a Lease by this PUT if it was deleted meanwhile.
   */
  put(lease: Lease, spec: LeaseSpec): Promise<Lease | undefined>
  /** A request that never ends must not delay the next. A write that was given up may still arrive: see `freeAt`. */
  within<T>(request: Promise<T>): Promise<T>
}

/** Reads and writes one Lease. Every request ends after `requestMs`. */
export function leaseAccess(
  { client, clock }: { client: Pick<Client, "get" | "create" | "replace">; clock: Clock },
  { namespace, name, requestMs }: { namespace: string; name: string; requestMs: number },
): LeaseAccess {
  const within = <T>(request: Promise<T>): Promise<T> =>
    new Promise((resolve, reject) => {
      const cancel = clock.after(requestMs, () =>
        reject(new KubeError("UnknownOutcome", `no answer about the Lease within ${requestMs / 1000} s`)),
      )
      request.then(resolve, reject).finally(cancel)
    })
  const unless =
    (...failures: Parameters<typeof isFailure>[1][]) =>
    (error: unknown) => {
      if (failures.some(each => isFailure(error, each))) return undefined
      throw error
    }
  return {
    within,
    read: () => within(client.get<Lease>(leases, { namespace, name })).catch(unless("NotFound")),
    found(leaseMs) {
      const vacant: Lease = {
        apiVersion: "coordination.k8s.io/v1",
        kind: "Lease",
        metadata: { name, namespace },
        spec: { leaseDurationSeconds: wholeSeconds(leaseMs), leaseTransitions: 0 },
      }
      return within(client.create(leases, vacant, { deadlineMs: requestMs })).catch(unless("Exists"))
    },
    put(lease, spec) {
      const { uid, resourceVersion } = lease.metadata
      assert(uid && resourceVersion, "what the server sends has a uid and a version")
      const request = client.replace<Lease>(leases, { ...lease, spec }, { deadlineMs: requestMs })
      return within(request).catch(unless("Conflict", "NotFound"))
    },
  }
}
