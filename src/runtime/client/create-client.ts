import { apiVersionOf, type KubeObject, type ObjectName, type Resource, resourceName } from "../resource.ts"
import { type Call, type ClientOptions, createCaller, deadlinesMs, maxBytes, metadataAs, parse } from "./calls.ts"
import type { Client, DeleteOptions, List, ListOptions, Patch, WriteOptions } from "./client.ts"
import { KubeError } from "./errors.ts"
import { mayEvict } from "./may-evict.ts"
import { collectionPath, groupVersionPath, objectPath, type Query, rawPath, subject } from "./path.ts"
import { watch } from "./watch.ts"

const patchTypes: Record<Patch["type"], string> = {
  merge: "application/merge-patch+json",
  strategic: "application/strategic-merge-patch+json",
  json: "application/json-patch+json",
  apply: "application/apply-patch+yaml", // JSON is YAML
}

type Write = Pick<Call, "method" | "body" | "contentType"> & {
  verb: keyof typeof writing
  resource: Resource
  name: ObjectName
  options: WriteOptions
  force?: boolean | undefined
}

const writing = { create: "creating", update: "replacing", patch: "patching" }

export function createClient(options: ClientOptions): Client {
  const { transport, clock } = options
  const caller = createCaller(options)
  const { ask, askFor, serverTime } = caller

  function write<T>({ verb, resource, name, options, force, ...content }: Write): Promise<T> {
    const { subresource, deadlineMs = deadlinesMs.other } = options
    const query: Query = {
      fieldManager: options.fieldManager ?? "aim",
      // Otherwise the server silently drops a field that it does not know, and the write seems to have worked.
      fieldValidation: "Strict",
      dryRun: options.dryRun ? "All" : undefined,
      force,
      timeout: serverTimeout(deadlineMs),
    }
    const isNew = verb === "create" && subresource === undefined
    if (isNew && resource.namespaced && name.namespace === undefined)
      throw new KubeError("Invalid", `creating ${subject(resource, name)}: metadata.namespace is missing`)
    return askFor<T>({
      verb,
      doing: `${writing[verb]} ${subject(resource, name)}`,
      resource: withSubresource(resource, subresource),
      path: isNew
        ? collectionPath(resource, name.namespace, query)
        : objectPath(resource, name, { subresource, query }),
      deadlineMs,
      maxBytes: maxBytes.object,
      ...content,
    })
  }

  async function list<T extends KubeObject>(resource: Resource, options: ListOptions = {}, signal?: AbortSignal) {
    const { namespace, metadataOnly, ...query } = options
    const answer = await askFor<Partial<List<T>> | null>({
      verb: "list",
      doing: `listing ${subject(resource, { namespace })}`,
      resource: resourceName(resource),
      method: "GET",
      path: collectionPath(resource, namespace, query),
      ...(metadataOnly && { accept: metadataAs("PartialObjectMetadataList") }),
      deadlineMs: deadlinesMs.list,
      maxBytes: maxBytes.list,
      signal,
    })
    if (!answer?.metadata) throw new KubeError("Unreachable", `listing ${subject(resource, { namespace })}: not a list`)
    const items = answer.items ?? [] // Go writes an empty slice as null
    // In a watch the server names the kind of each object, in a list it does not. Callers get it in both.
    const apiVersion = apiVersionOf(resource)
    for (const item of items) {
      item.apiVersion ??= apiVersion
      item.kind ??= resource.kind
    }
    return { metadata: answer.metadata, items }
  }

  return {
    async get(resource, name) {
      return askFor({
        verb: "get",
        doing: `getting ${subject(resource, name)}`,
        resource: resourceName(resource),
        method: "GET",
        path: objectPath(resource, name),
        deadlineMs: deadlinesMs.other,
        maxBytes: maxBytes.object,
      })
    },
    list,
    watch: (resource, options, signal) => watch(caller, clock, resource, options, signal),
    async create(resource, object, options = {}) {
      const body = typed(resource, object, options)
      return write({ verb: "create", method: "POST", resource, name: object.metadata, body, options })
    },
    async replace(resource, object, options = {}) {
      const body = typed(resource, object, options)
      return write({ verb: "update", method: "PUT", resource, name: object.metadata, body, options })
    },
    async patch(resource, name, patch, options = {}) {
      const contentType = patchTypes[patch.type]
      const what = { verb: "patch", method: "PATCH", resource, name, contentType, options } as const
      if (patch.type !== "apply") return write({ ...what, body: patch.body })
      return write({ ...what, body: typed(resource, patch.body, options), force: patch.force })
    },
    async delete(resource, name, options = {}) {
      const { subresource, deadlineMs = deadlinesMs.other } = options
      await ask({
        verb: "delete",
        doing: `deleting ${subject(resource, name)}`,
        resource: withSubresource(resource, subresource),
        method: "DELETE",
        path: objectPath(resource, name, { subresource, query: { timeout: serverTimeout(deadlineMs) } }),
        body: deleteBody(options),
        deadlineMs,
        maxBytes: maxBytes.object,
      })
    },
    mayEvict: (pods, name) => mayEvict(caller, pods, name),
    async discover(apiVersion, kind) {
      const parts = apiVersion.split("/")
      if (parts.length > 2) throw new KubeError("Invalid", `${JSON.stringify(apiVersion)} is not GROUP/VERSION`)
      const version = parts.pop() ?? ""
      const group = parts[0] ?? ""
      type ResourceList = { resources?: { name: string; kind: string; namespaced: boolean }[] } | null
      try {
        const answer = await askFor<ResourceList>({
          verb: "get",
          doing: `discovering ${kind} in ${apiVersion}`,
          resource: "discovery",
          method: "GET",
          path: groupVersionPath(group, version),
          deadlineMs: deadlinesMs.other,
          maxBytes: maxBytes.object,
        })
        const found = answer?.resources?.find(entry => entry.kind === kind && !entry.name.includes("/"))
        return found && { group, version, plural: found.name, kind, namespaced: found.namespaced }
      } catch (error) {
        if (error instanceof KubeError && error.kind === "NotFound") return undefined
        throw error
      }
    },
    async raw(path, signal) {
      const call: Call = {
        verb: "get",
        doing: `getting ${path.slice(0, 80)}`,
        resource: path.split("?", 1)[0] ?? "",
        method: "GET",
        path: rawPath(path),
        deadlineMs: deadlinesMs.other,
        maxBytes: maxBytes.object,
        signal,
      }
      const { text, headers } = await ask(call)
      return headers["content-type"]?.includes("json") ? parse(call, text) : text
    },
    serverTime,
    close: () => transport.close(),
  }
}

const withSubresource = (resource: Resource, subresource: string | undefined) =>
  subresource ? `${resourceName(resource)}/${subresource}` : resourceName(resource)

/** The server needs apiVersion and kind. A Scale is not of its resource's kind and carries its own. */
const typed = (resource: Resource, object: object, { subresource }: WriteOptions) =>
  subresource === "scale" ? object : { apiVersion: apiVersionOf(resource), kind: resource.kind, ...object }

/** If there is a body, the server reads no options from the query, so all of them are here. */
function deleteBody({ uid, resourceVersion, propagationPolicy, dryRun }: DeleteOptions): object {
  const preconditions = { ...(uid && { uid }), ...(resourceVersion && { resourceVersion }) }
  return {
    apiVersion: "v1",
    kind: "DeleteOptions",
    ...(Object.keys(preconditions).length > 0 && { preconditions }),
    ...(propagationPolicy && { propagationPolicy }),
    ...(dryRun && { dryRun: ["All"] }),
  }
}

/** The server gives up when we do: a write with an unknown outcome cannot be applied much later than that. */
const serverTimeout = (deadlineMs: number) => `${Math.max(1, Math.ceil(deadlineMs / 1000))}s`
