/**
 * The minimum of a rollout: the same patches with the same concurrency, and nothing else. In a process of its
 * own, as the controller is. Takes what to do as JSON on stdin.
 */
import { json } from "node:stream/consumers"
import { decisionAnnotation, formatDecision } from "#core/image/record.ts"
import { forEachLimited } from "#lib/batch.ts"
import { type Access, connectApi } from "#tools/kube/api.ts"
import { writesAtOnce } from "./tenants.ts"

export type Orders = { access: Access; image: string; objects: { path: string; resourceVersion: string }[] }

const { access, image, objects } = (await json(process.stdin)) as Orders
const api = connectApi(access)
await forEachLimited(objects, writesAtOnce, async ({ path, resourceVersion }) => {
  const decided = { operation: "0123456789ab", by: "serviceimage/bench", at: Date.now(), reason: "Stamped" } as const
  const annotations = { [decisionAnnotation]: formatDecision({ from: image, to: image, ...decided }) }
  await api.patch(path, { metadata: { resourceVersion, annotations }, spec: { image } })
})
api.close()
