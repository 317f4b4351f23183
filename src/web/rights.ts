import type { Client } from "#runtime/client/client.ts"
import { isFailure } from "#runtime/client/errors.ts"
import { listAll } from "#runtime/client/list-all.ts"
import { core, type KubeObject, type Resource } from "#runtime/resource.ts"
import type { Viewer } from "./viewer.ts"

const reviews: Resource = {
  group: "authorization.k8s.io",
  version: "v1",
  plural: "selfsubjectaccessreviews",
  kind: "SelfSubjectAccessReview",
  namespaced: false,
}

type Asked = { verb: string; resource: Resource; namespace?: string | undefined; name?: string | undefined }

/** Whether the server lets this user do something, and its words where it does not. */
export async function may(client: Client, { verb, resource, namespace, name }: Asked) {
  const { group, version, plural } = resource
  const resourceAttributes = { verb, group, version, resource: plural, namespace, name }
  const review = {
    apiVersion: "authorization.k8s.io/v1",
    kind: reviews.kind,
    metadata: { name: "" },
    spec: { resourceAttributes },
  }
  const { status } = (await client.create(reviews, review as KubeObject)) as unknown as {
    status?: { allowed?: boolean; reason?: string }
  }
  return { isAllowed: status?.allowed === true, reason: status?.reason ?? "" }
}

/** List and watch: what a feed does. */
export async function mayFollow(client: Client, resource: Resource, namespace?: string): Promise<boolean> {
  for (const verb of ["list", "watch"]) if (!(await may(client, { verb, resource, namespace })).isAllowed) return false
  return true
}

/** What a user sees of a kind. */
export type Scope = { is: "All" } | { is: "Some"; namespaces: readonly string[] } | { is: "None" }

const namespacesKind = core("namespaces", "Namespace", false)
/** Each costs two reviews every 30 s. */
const namespacesMost = 50

/**
 * All namespaces, or those that the user may list and watch in. Which ones exist is read where the user may; otherwise
 * only the user's own is tried.
 */
export async function scopeOf({ client, namespace }: Viewer, resource: Resource): Promise<Scope> {
  if (await mayFollow(client, resource)) return { is: "All" }
  if (!resource.namespaced) return { is: "None" }
  const names = await listAll<KubeObject>(client, namespacesKind, { metadataOnly: true }).then(
    ({ items }) => items.map(({ metadata }) => metadata.name),
    error => {
      if (isFailure(error, "Forbidden")) return [namespace]
      throw error
    },
  )
  const found: string[] = []
  for (const name of names.slice(0, namespacesMost)) if (await mayFollow(client, resource, name)) found.push(name)
  return found.length > 0 ? { is: "Some", namespaces: found } : { is: "None" }
}

/** In words, for a viewer that does not see everything. */
export function scopeWords(scope: Scope, { plural }: Resource): string {
  if (scope.is === "All") return ""
  if (scope.is === "None") return `you may not list and watch ${plural}`
  return `you see the ${plural} of ${scope.namespaces.join(", ")}: you may not list and watch those of all namespaces`
}

export const isSameScope = (a: Scope, b: Scope) =>
  a.is === b.is && (a.is !== "Some" || b.is !== "Some" || a.namespaces.join() === b.namespaces.join())
