import { type ObjectName, type Resource, resourceName } from "../resource.ts"
import { type Caller, deadlinesMs, maxBytes } from "./calls.ts"
import type { MayEvict } from "./client.ts"
import { isFailure } from "./errors.ts"
import { objectPath, subject } from "./path.ts"

/**
 * Asks the server to evict a pod as a dry run. There is no way to ask without it: whatever calls this, no pod is evicted.
 * A budget that is spent answers 429 with a cause; every other 429 is the server's own wish to wait.
 */
export async function mayEvict({ ask }: Pick<Caller, "ask">, pods: Resource, of: ObjectName): Promise<MayEvict> {
  const dryRun = "All"
  const name: ObjectName = { name: of.name, namespace: of.namespace }
  try {
    await ask({
      verb: "create",
      doing: `asking whether ${subject(pods, name)} may be evicted`,
      resource: `${resourceName(pods)}/eviction`,
      method: "POST",
      path: objectPath(pods, name, { subresource: "eviction", query: { dryRun } }),
      body: { apiVersion: "policy/v1", kind: "Eviction", metadata: name, deleteOptions: { dryRun: [dryRun] } },
      deadlineMs: deadlinesMs.other,
      maxBytes: maxBytes.object,
      isQuestion: true,
    })
    return { is: "Allowed" }
  } catch (error) {
    const cause = isFailure(error, "Throttled") && error.causes.find(({ reason }) => reason === "DisruptionBudget")
    if (!cause) throw error
    return { is: "Spent", said: cause.message ?? error.said }
  }
}
