import type { KindStorage } from "../../apiserver/storage.ts"
import type { Json, Obj } from "../../object.ts"
import { StatusError } from "../../status-error.ts"
import { fnv32, safeEncode } from "./hash.ts"
import { servedKind } from "./loop.ts"
import { claim, manager, type OwnedIndex } from "./owned.ts"
import { createdAt, ownerReference } from "./pods.ts"

/** On pods, and on the revisions of a DaemonSet. */
export const revisionLabel = "controller-revision-hash"
const ownHashLabel = "controller.kubernetes.io/hash"

/** The data of a ControllerRevision: a patch that restores the template of a workload. */
export const revisionData = (template: Json): Json => sorted({ spec: { template: { ...template, $patch: "replace" } } })

/** The hash in the name of a StatefulSet's revision. */
export function revisionHash(data: Json, collisionCount: number): string {
  const hash = fnv32(goJson(data), { multiplyFirst: true })
  return safeEncode(String(fnv32(String(collisionCount), { multiplyFirst: true, from: hash })))
}

export const isSameData = (a: Json, b: Json) => goJson(sorted(a)) === goJson(sorted(b))

/** JSON as Go writes it, escaped for HTML. */
const goJson = (value: Json) =>
  JSON.stringify(value).replace(
    /[<>&\u2028\u2029]/g,
    character => `\\u${character.charCodeAt(0).toString(16).padStart(4, "0")}`,
  )

function sorted(value: Json): Json {
  if (Array.isArray(value)) return value.map(sorted)
  if (typeof value !== "object" || value === null) return value
  return Object.fromEntries(
    Object.keys(value)
      .sort((a, b) => Buffer.compare(Buffer.from(a), Buffer.from(b)))
      .map(key => [key, sorted(value[key])]),
  )
}

/** Oldest first. */
export const byRevision = (a: Obj, b: Obj) =>
  a.revision - b.revision || (createdAt(a) ?? 0) - (createdAt(b) ?? 0) || (a.metadata.name < b.metadata.name ? -1 : 1)

export type History = { storage: KindStorage; owner: Obj; owned: OwnedIndex; matches(revision: Obj): boolean }

/** The revisions of a workload, oldest first; orphans that match are adopted. */
export function listRevisions({ storage, owner, owned, matches }: History): Obj[] {
  const kind = servedKind(storage, "apps/v1", "ControllerRevision")
  return claim({ storage, kind, owner, owned }, matches).sort(byRevision)
}

/** Creates a revision with the name from `nameOf`. If another template has that name, the collision count is raised. */
export function createRevision(
  storage: KindStorage,
  owner: Obj,
  revision: { data: Json; number: number; hashOf(collisionCount: number): string; annotations?: Json },
  collisionCount: number,
): { revision: Obj; collisionCount: number } {
  const kind = servedKind(storage, "apps/v1", "ControllerRevision")
  for (let count = collisionCount; ; count++) {
    const hash = revision.hashOf(count)
    const name = `${owner.metadata.name.slice(0, 223)}-${hash}`
    const { annotations } = revision
    try {
      const created = storage.create(
        kind,
        {
          apiVersion: "apps/v1",
          kind: "ControllerRevision",
          metadata: {
            name,
            namespace: owner.metadata.namespace,
            labels: { ...owner.spec.template.metadata?.labels, [ownHashLabel]: hash },
            ...(annotations && Object.keys(annotations).length > 0 && { annotations }),
            ownerReferences: [ownerReference(owner)],
          },
          data: revision.data,
          revision: revision.number,
        },
        manager,
      )
      return { revision: created, collisionCount: count }
    } catch (error) {
      if (!(error instanceof StatusError) || error.reason !== "AlreadyExists") throw error
      const existing = storage.get(kind, { name, namespace: owner.metadata.namespace })
      if (isSameData(existing.data, revision.data)) return { revision: existing, collisionCount: count }
    }
  }
}

export function renumber(storage: KindStorage, revision: Obj, number: number): Obj {
  if (revision.revision === number) return revision
  const kind = servedKind(storage, "apps/v1", "ControllerRevision")
  return storage.update(kind, { ...revision, revision: number }, manager)
}
