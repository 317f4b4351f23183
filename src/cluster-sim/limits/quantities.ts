import { formatQuantity, parseQuantity, type Quantity } from "#lib/quantity.ts"
import type { Json } from "../object.ts"

/** Quantities by resource, exact. */
export type Quantities = Record<string, Quantity>

export function quantities(list: Record<string, string> = {}): Quantities {
  const parsed: Quantities = {}
  for (const [name, text] of Object.entries(list)) {
    const quantity = parseQuantity(text)
    if (quantity) parsed[name] = quantity
  }
  return parsed
}

export const texts = (list: Quantities): Record<string, string> =>
  Object.fromEntries(Object.entries(list).map(([name, quantity]) => [name, formatQuantity(quantity)]))

/** A count as a quantity. */
export const pieces = (count: number): Quantity => ({ nano: BigInt(count) * 10n ** 9n, format: "DecimalSI" })

/** Adds as Go's Quantity does: the sum has the format of the first operand, unless that is zero. */
export function plus(a: Quantities, b: Quantities): Quantities {
  const sum = { ...a }
  for (const [name, more] of Object.entries(b)) {
    const own = sum[name]
    sum[name] = own && own.nano !== 0n ? { ...own, nano: own.nano + more.nano } : more
  }
  return sum
}

export function minus(a: Quantities, b: Quantities): Quantities {
  const rest = { ...a }
  for (const [name, less] of Object.entries(b)) {
    const own = rest[name] ?? { nano: 0n, format: less.format }
    rest[name] = { ...own, nano: own.nano - less.nano }
  }
  return rest
}

/** The larger value of both for each name. */
function most(a: Quantities, b: Quantities): Quantities {
  const larger = { ...a }
  for (const [name, quantity] of Object.entries(b))
    if (!larger[name] || larger[name].nano < quantity.nano) larger[name] = quantity
  return larger
}

export const only = (list: Quantities, isKept: (name: string, quantity: Quantity) => boolean): Quantities =>
  Object.fromEntries(Object.entries(list).filter(([name, quantity]) => isKept(name, quantity)))

/** Requests or limits of a pod: the sum of its containers, or an init container with its sidecars if that is larger. */
export function podTotal({ spec }: Json, which: "requests" | "limits"): Quantities {
  const own = (container: Json) => quantities(container.resources?.[which])
  let sum: Quantities = {}
  for (const container of spec.containers ?? []) sum = plus(sum, own(container))
  let sidecars: Quantities = {}
  let peak: Quantities = {}
  for (const container of spec.initContainers ?? []) {
    peak = most(peak, plus(sidecars, own(container)))
    if (container.restartPolicy === "Always") sidecars = plus(sidecars, own(container))
  }
  sum = most(plus(sum, sidecars), peak)
  const overhead = quantities(spec.overhead)
  // Overhead counts towards a limit only if there is one.
  return plus(sum, which === "requests" ? overhead : only(overhead, name => Object.hasOwn(sum, name)))
}
