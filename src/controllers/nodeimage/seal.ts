import type { Addition } from "#core/pulls/edit.ts"
import { isPublicKey, seal } from "#lib/seal.ts"
import type { Credentials } from "../pulls.ts"

/**
 * The credentials of a job for one node, one job and one registry host: the agent whose key it is can open them, and
 * only for this purpose. Undefined where the job has none, or the node has no key.
 */
export function sealedFor(
  credentials: Credentials,
  publicKey: string,
  purpose: { nodeUid: string; jobUid: string; host: string },
): Addition["sealed"] {
  if (credentials.is !== "Found" || credentials.accounts.length === 0 || !isPublicKey(publicKey)) return undefined
  const { nodeUid, jobUid, host } = purpose
  return { key: publicKey, box: seal(JSON.stringify(credentials.accounts), publicKey, [nodeUid, jobUid, host]) }
}
