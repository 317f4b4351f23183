import { type Clock, systemClock } from "#runtime/clock.ts"
import { readAllowances } from "./allowances.ts"
import { createEgress, type EgressOptions, type EgressRequest } from "./request.ts"
import type { Rules } from "./rules.ts"

export type World = Omit<Partial<EgressOptions>, "rules" | "clock"> & {
  clock?: Clock
  allow?: readonly string[]
  serviceAt?: Rules["serviceAt"]
}

/** The way out of a cluster without Services, unless it is given some. */
export function egressOf({ allow = [], serviceAt = () => undefined, clock = systemClock, ...options }: World = {}) {
  const { request } = createEgress({ clock, rules: { allowances: readAllowances(allow), serviceAt }, ...options })
  return (url: string, asked: Partial<EgressRequest> = {}) =>
    request({ namespace: "shop", url, method: "GET", timeoutMs: 10_000, ...asked })
}

/** Of a server on loopback, which an administrator has allowed. */
export const requestAt = (port: number, asked: Partial<EgressRequest> = {}, world: World = {}) =>
  egressOf({ allow: [`shop=127.0.0.1:${port}`], ...world })(`http://127.0.0.1:${port}/`, asked)
