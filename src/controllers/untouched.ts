import { kindNames } from "#api/names.ts"
import type { Client } from "#runtime/client/client.ts"
import { isFailure } from "#runtime/client/errors.ts"
import { resourceOf } from "#runtime/resource.ts"

/** More objects than this are no first trial. */
const objectsMost = 50

/**
 * Whether no controller of ours can have acted in this cluster: each writes a status as soon as it sees an object, and
 * no object has one. Throws where this cannot be determined.
 */
export async function isUntouched(client: Pick<Client, "list">): Promise<boolean> {
  for (const resource of kindNames.map(resourceOf)) {
    const { items, metadata } = await client.list(resource, { limit: objectsMost }).catch(error => {
      if (isFailure(error, "NotFound")) return { items: [], metadata: {} } // the kind is not installed
      throw error
    })
    if ("continue" in metadata && metadata.continue) return false
    if (items.some(object => "status" in object)) return false
  }
  return true
}
