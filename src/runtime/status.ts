import { isSame } from "#lib/same.ts"
import type { Context } from "./controller.ts"
import { newest } from "./newest.ts"
import { type KubeObject, keyOf, type Resource } from "./resource.ts"

export type WithStatus = KubeObject & { apiVersion: string; kind: string; status?: unknown }

/** A turning point that is worth an Event. */
export type Episode = { type: "Normal" | "Warning"; reason: string; message: string }

/** Writes the status of one kind. The write fails if the object has changed since it was read. */
export type StatusWriter<O extends WithStatus> = {
  /** The object as the cache shows it, or as our own last write left it if the cache is behind. */
  newest(cached: O): O
  /** Writes the status if it has changed, then records the episodes. */
  write(object: O, status: O["status"], episodes?: readonly Episode[]): Promise<void>
  /** Writes the status even if it is unchanged. The answer proves that the object has not changed since it was read. */
  prove(object: O, status: O["status"], episodes?: readonly Episode[]): Promise<void>
  forget(key: string): void
}

export function statusWriter<O extends WithStatus>(
  { client, events }: Pick<Context, "client" | "events">,
  resource: Resource,
): StatusWriter<O> {
  const written = new Map<string, O>()

  async function replace(object: O, status: O["status"]): Promise<void> {
    const answer = await client.replace(resource, { ...object, status }, { subresource: "status" })
    written.set(keyOf(object.metadata), answer)
  }

  function record(object: O, episodes: readonly Episode[] = []): void {
    for (const episode of episodes) events.record(object, episode)
  }

  return {
    newest(cached) {
      const key = keyOf(cached.metadata)
      const known = newest(cached, written.get(key))
      // The cache shows it: a second copy of each object would be kept for good.
      if (known === cached) written.delete(key)
      return known
    },
    async write(object, status, episodes) {
      if (!isSame(object.status, status)) await replace(object, status)
      record(object, episodes)
    },
    async prove(object, status, episodes) {
      await replace(object, status)
      record(object, episodes)
    },
    forget: key => void written.delete(key),
  }
}
