import type { Client } from "#runtime/client/client.ts"
import { isFailure } from "#runtime/client/errors.ts"
import { alternateImageSources } from "./alternateimagesource/resources.ts"
import { serviceImages } from "./serviceimage/resources.ts"

/** More objects than this are no first trial. */
const objectsMost = 50

/**
 * Whether no controller of ours can have acted in this cluster: each writes a status as soon as it sees an object, and
 * no object has one. Throws where that cannot be found out.
 */
export async function isUntouched(client: Pick<Client, "list">): Promise<boolean> {
  for (const resource of [serviceImages, alternateImageSources]) {
    const { items, metadata } = await client.list(resource, { limit: objectsMost }).catch(error => {
      if (isFailure(error, "NotFound")) return { items: [], metadata: {} } // the kind is not installed
      throw error
    })
    if ("continue" in metadata && metadata.continue) return false
    if (items.some(object => "status" in object)) return false
  }
  return true
}
