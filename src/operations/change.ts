import type { Client } from "#runtime/client/client.ts"
import { isFailure } from "#runtime/client/errors.ts"
import type { KubeObject, Resource } from "#runtime/resource.ts"
import { fetchAll } from "./fetch.ts"
import { serviceImages, shortOf } from "./kinds.ts"
import { Failure } from "./refusal.ts"
import type { Seen } from "./rollout.ts"

/** The patch, if there is one, and what the caller wants to keep of the decision. */
export type Patch = { spec?: object; metadata?: { annotations: Record<string, string | null> } }

/** Conflicts that are retried: a rollout writes its status several times a second. */
const attempts = 10

/**
 * Reads one ServiceImage, decides, and writes on condition of the version that was read; after a conflict it reads and
 * decides again. `decide` throws a Failure to refuse, and returns no patch to leave the object as it is.
 */
export async function change<T extends { patch?: Patch | undefined }>(
  name: string,
  decide: (object: Seen) => T,
  options: { client: Client; dryRun?: boolean },
): Promise<T & { object: Seen }> {
  return changeObject({ resource: serviceImages, name }, decide, options)
}

/** The same for an object of any kind. */
export async function changeObject<O extends KubeObject, T extends { patch?: Patch | undefined }>(
  { resource, name, namespace }: { resource: Resource; name: string; namespace?: string },
  decide: (object: O) => T,
  { client, dryRun = false }: { client: Client; dryRun?: boolean },
): Promise<T & { object: O }> {
  for (let attempt = 1; ; attempt++) {
    const [object] = await fetchAll<O>(client, resource, [name], { namespace })
    const decided = decide(object!)
    if (!decided.patch) return { ...decided, object: object! }
    const { resourceVersion } = object!.metadata
    const body = { ...decided.patch, metadata: { ...decided.patch.metadata, resourceVersion } }
    try {
      const written = await client.patch<O>(resource, { name, namespace }, { type: "merge", body }, { dryRun })
      return { ...decided, object: written }
    } catch (error) {
      if (!isFailure(error, "Conflict")) throw error
      if (attempt === attempts)
        throw new Failure(
          `${shortOf(resource)}/${name} kept changing (${attempts} conflicts); nothing was changed, try again`,
        )
    }
  }
}

/** What is decided about an object: what is written, what was done in words, and what follows. */
export type Decided<O = Seen> = {
  /** Absent where the object is as wanted already. */
  patch?: Patch | undefined
  done: string
  /** From the object as the server answered. */
  next(after: O): string
}
