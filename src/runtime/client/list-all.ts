import type { KubeObject, Resource } from "../resource.ts"
import type { Client, List, ListOptions } from "./client.ts"

const pageSize = 500

type Selection = Omit<ListOptions, "limit" | "continue">

/** A list in pages, so that neither the server nor the caller must hold all of it at once. */
export async function* pagesOf<T extends KubeObject>(
  client: Pick<Client, "list">,
  resource: Resource,
  selection: Selection = {},
  signal?: AbortSignal,
): AsyncGenerator<List<T>> {
  for (let token = ""; ; ) {
    const page = await client.list<T>(
      resource,
      { ...selection, limit: pageSize, ...(token && { continue: token }) },
      signal,
    )
    yield page
    token = page.metadata.continue ?? ""
    if (!token) return
  }
}

/** Every object of a list, and the version from which a watch goes on. */
export async function listAll<T extends KubeObject>(
  client: Pick<Client, "list">,
  resource: Resource,
  selection: Selection = {},
  signal?: AbortSignal,
): Promise<{ items: T[]; resourceVersion: string }> {
  const items: T[] = []
  let resourceVersion = ""
  for await (const page of pagesOf<T>(client, resource, selection, signal)) {
    items.push(...page.items)
    resourceVersion = page.metadata.resourceVersion
  }
  return { items, resourceVersion }
}
