import { parseQuantity } from "#lib/quantity.ts"
import type { Obj } from "../../object.ts"
import { isSidecar, specs } from "./pod-spec.ts"

/** Amounts by resource: cpu in cores, memory in bytes, others as counts. */
export type Amounts = Record<string, number>

const known = new Map<string, number>()

/** A quantity as a number, cached, since the same few strings are frequent. */
function amount(quantity: string | number): number {
  if (typeof quantity === "number") return quantity
  const found = known.get(quantity)
  if (found !== undefined) return found
  const parsed = parseQuantity(quantity)
  const value = parsed ? Number(parsed.nano) / 1e9 : 0
  if (known.size < 10_000) known.set(quantity, value)
  return value
}

const amounts = (list: Record<string, string> = {}): Amounts =>
  Object.fromEntries(Object.entries(list).map(([name, quantity]) => [name, amount(quantity)]))

/**
 * The requests of a pod: the sum of its containers, or more if an init container with the sidecars before it needs
 * more.
 */
export function podRequests(pod: Obj): Amounts {
  const { init, main } = specs(pod)
  if (pod.spec.resources?.requests) return amounts(pod.spec.resources.requests)
  const sum: Amounts = {}
  for (const { resources } of main) add(sum, amounts(resources?.requests))
  if (init.length > 0) {
    const sidecars: Amounts = {}
    const peak: Amounts = {}
    for (const spec of init) {
      const own = amounts(spec.resources?.requests)
      const together = { ...sidecars }
      add(together, own)
      raise(peak, together)
      if (isSidecar(spec)) add(sidecars, own)
    }
    add(sum, sidecars)
    raise(sum, peak)
  }
  if (pod.spec.overhead) add(sum, amounts(pod.spec.overhead))
  return sum
}

export const nodeAllocatable = (node: Obj): Amounts => amounts(node.status?.allocatable)

export function add(sum: Amounts, more: Amounts, sign = 1): void {
  for (const [name, value] of Object.entries(more)) sum[name] = (sum[name] ?? 0) + sign * value
}

function raise(sum: Amounts, least: Amounts): void {
  for (const [name, value] of Object.entries(least)) if (value > (sum[name] ?? 0)) sum[name] = value
}
