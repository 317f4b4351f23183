import { formatQuantity, parseQuantity } from "#lib/quantity.ts"
import type { Json, Obj } from "../../object.ts"

export const specs = (pod: Obj): { init: Json[]; main: Json[] } => ({
  init: pod.spec.initContainers ?? [],
  main: pod.spec.containers,
})

/** An init container that keeps running beside the others. */
export const isSidecar = (spec: Json): boolean => spec.restartPolicy === "Always"

/** Requests and limits of the whole pod as 1.36 writes them into its status. */
export function podLevelResources(pod: Obj): { requests?: Json; limits?: Json } {
  const { init, main } = specs(pod)
  const all = [...main, ...init]
  if (all.every(({ resources = {} }) => !resources.requests && !resources.limits)) return {}
  if (all.length === 1) {
    const { requests, limits } = main[0].resources
    return { ...(limits && { limits }), ...(requests && { requests }) }
  }
  const total = (which: "requests" | "limits") => {
    const sum: Record<string, { nano: bigint; format: "DecimalSI" | "BinarySI" | "DecimalExponent" }> = {}
    for (const { resources } of main)
      for (const [name, quantity] of Object.entries<string>(resources?.[which] ?? {})) {
        const parsed = parseQuantity(quantity)
        if (parsed) sum[name] = { ...parsed, nano: parsed.nano + (sum[name]?.nano ?? 0n) }
      }
    const list = Object.entries(sum).map(([name, quantity]) => [name, formatQuantity(quantity)])
    return list.length > 0 ? Object.fromEntries(list) : undefined
  }
  const requests = total("requests")
  const limits = total("limits")
  return { ...(limits && { limits }), ...(requests && { requests }) }
}
