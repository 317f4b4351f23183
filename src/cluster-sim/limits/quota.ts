import { formatQuantity } from "#lib/quantity.ts"
import type { ServedKind } from "../apiserver/kind.ts"
import type { Json, Obj } from "../object.ts"
import { minus, only, plus, type Quantities, quantities, texts } from "./quantities.ts"
import { countsKind, isInScope, missingFor, usageOf } from "./usage.ts"

export type Charge = { quota: Obj; used: Record<string, string> }

/** The charges of a write to the quotas of its namespace, or why one of them refuses it, in the server's words. */
export function charge(
  kind: ServedKind,
  { object, old, quotas, nowMs }: { object: Json; old: Obj | undefined; quotas: readonly Obj[]; nowMs: number },
): { refusal: string } | { charges: Charge[] } {
  const concerned: { quota: Obj; hard: Quantities }[] = []
  for (const quota of quotas) {
    const limited = quantities(quota.status?.hard)
    const names = Object.keys(limited).filter(name => countsKind(name, kind))
    if (names.length === 0 || !isInScope(quota, kind, object)) continue
    const missing = kind.group === "" && kind.plural === "pods" ? missingFor(object, names) : undefined
    if (missing) return { refusal: `failed quota: ${quota.metadata.name}: ${missing}` }
    concerned.push({ quota, hard: limited })
  }
  if (concerned.length === 0) return { charges: [] }

  const usage = usageOf(kind, object, nowMs)
  const delta = only(old ? minus(usage, usageOf(kind, old, nowMs)) : usage, (_, { nano }) => nano !== 0n)
  const charges: Charge[] = []
  for (const { quota, hard } of concerned) {
    const requested = only(delta, name => Object.hasOwn(hard, name))
    const used = quantities(quota.status?.used)
    const next = plus(used, requested)
    const exceeded = Object.keys(requested).filter(name => next[name]!.nano > hard[name]!.nano)
    if (exceeded.length > 0) {
      const list = (from: Quantities) =>
        exceeded
          .sort()
          .map(name => `${name}=${from[name] ? formatQuantity(from[name]) : "0"}`)
          .join(",")
      const words = `requested: ${list(requested)}, used: ${list(used)}, limited: ${list(hard)}`
      return { refusal: `exceeded quota: ${quota.metadata.name}, ${words}` }
    }
    if (Object.keys(requested).length > 0) charges.push({ quota, used: texts(next) })
  }
  return { charges }
}
