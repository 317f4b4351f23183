import { isObjectName } from "../names.ts"
import type { Remark } from "./judged.ts"

/** Remarks that jobs and NodeImages of OpenKruise have in common. */

export const isWritten = (value: unknown) => value !== undefined && value !== null

/** OpenKruise reads every Secret that a job names; aim reads those that were granted to it. */
export function grantRemark(names: unknown, namespace: string | undefined, path: string): Remark[] {
  if (!Array.isArray(names) || names.length === 0) return []
  // The command is there to be copied into a shell. Names of Secrets are checked by the schema, the namespace is not.
  const isName = namespace !== undefined && isObjectName(namespace)
  const command = `aim grant ${isName ? namespace : "NAMESPACE"} --pull-secrets ${names.join(",")}`
  return [{ path, message: `aim reads a Secret only where it is granted: run \`${command}\`` }]
}
