import type { Resource } from "#runtime/resource.ts"
import type { Watched } from "../commands/wait.ts"
import { workloadLine } from "../render/workload.ts"
import { shownAlone } from "./status.ts"

/** What a workload waits for a person for, or has failed with. */
const failed = new Set(["Stalled", "Paused", "RolledBack"])

/** Waits until every pod has the last change: where a workload is held, its own status says too much or too little. */
export const changes = (resource: Resource, namespace: string): Watched => ({
  resource,
  namespace,
  read(object) {
    const shown = shownAlone(object, resource.kind)
    const is = shown.state === "Complete" ? "complete" : failed.has(shown.state) ? "failed" : undefined
    return { line: workloadLine(shown), is }
  },
})
