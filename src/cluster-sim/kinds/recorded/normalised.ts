import type { Json } from "../../object.ts"

const uid = /[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}/g

/** An answer without what differs from one run to the next. */
export function normalised(answer: Json): Json {
  const text = JSON.stringify(answer, (key, value) => {
    if (key === "managedFields" || key === "resourceVersion") return undefined
    if ((key === "creationTimestamp" || key === "lastTransitionTime") && value) return "2026-01-02T03:04:05Z"
    if (key === "clusterIP" && value !== "None") return "10.96.77.7"
    if (key === "clusterIPs" && value[0] !== "None") return ["10.96.77.7"]
    if (key === "nodePort") return 30_000
    if (typeof value !== "string") return value
    return value.replaceAll(uid, "UID").replace(/^kube-api-access-.{5}$/, "kube-api-access-xxxxx")
  })
  return JSON.parse(text)
}
