import { parse as parseYaml } from "yaml"
import { formatInstant } from "#lib/instant.ts"
import { NotSent, type Request, type Response, type Transport } from "#runtime/client/transport.ts"
import type { Clock } from "#runtime/clock.ts"
import type { Random } from "#runtime/random.ts"
import { resourceName } from "#runtime/resource.ts"
import type { ServerStorage } from "../apiserver/create-storage.ts"
import type { ServedKind } from "../apiserver/kind.ts"
import { badRequest, methodNotAllowed, notFound } from "../apiserver/refusals.ts"
import { scaleOf } from "../apiserver/scale.ts"
import type { Name, PatchBody, WriteOptions } from "../apiserver/storage.ts"
import { type Auth, attributesOf, superuser, type User } from "../auth/index.ts"
import type { Json, Obj } from "../object.ts"
import { parseBody, parsePatch } from "../schema/index.ts"
import { StatusError } from "../status-error.ts"
import { type Answer, failure, json, text, unknownPath, unknownResource } from "./answer.ts"
import { aggregated, groupInfo, groupsOf, resourceList, serverVersion } from "./discovery.ts"
import { type Form, includeOf, listBody, partial, table } from "./forms.ts"
import { listPage, type Page, tooLarge } from "./lists.ts"
import { openApi } from "./openapi.ts"
import { deleteOptions, listRequest, revisionOf, type WriteVerb, writeOptions } from "./query.ts"
import { answerReview, reviews } from "./reviews.ts"
import { callSubresource } from "./subresources.ts"
import { watchStream } from "./watch.ts"

export type ApiServerOptions = {
  storage: ServerStorage
  clock: Clock
  random: Random
  auth: Auth
  /** The user of requests without credentials. */
  fallback: User
}

/** The target of a request, parsed from its path. */
type Target = {
  kind: ServedKind
  namespace: string | undefined
  name?: string | undefined
  subresource?: string | undefined
}

type Incoming = {
  method: Request["method"] | "HEAD"
  path: string[]
  query: URLSearchParams
  headers: Record<string, string>
  body: string | undefined
  signal: AbortSignal
  user: User
}

/** The Kubernetes API over a storage, answering the client's transport in process. */
export function createApiServer(api: ApiServerOptions): Transport {
  return {
    async send(request) {
      if (request.signal.aborted) throw new NotSent("aborted before it was sent", { cause: request.signal.reason })
      request.guard?.()
      const answer = await answerTo(api, request)
      const { status, headers, body } = answer
      const dated = { date: new Date(api.clock.now()).toUTCString(), ...headers }
      return { status, headers: dated, body: until(request.signal, body) } satisfies Response
    },
    close() {},
  }
}

/** A body that ends with an error once the request is aborted. Watches handle that themselves. */
function until(signal: AbortSignal, body: Answer["body"]): AsyncIterable<Uint8Array> {
  return typeof body === "string" ? once(signal, body) : body
}

async function* once(signal: AbortSignal, body: string): AsyncGenerator<Uint8Array> {
  if (signal.aborted) throw signal.reason
  if (body !== "") yield Buffer.from(body)
}

function answerTo(api: ApiServerOptions, request: Request): Answer | Promise<Answer> {
  const warnings: string[] = []
  const warn = (warning: string) => warnings.push(`299 - ${JSON.stringify(warning)}`)
  const warned = (answer: Answer) => {
    if (warnings.length > 0) answer.headers.warning = warnings.join(", ")
    return answer
  }
  try {
    const answer = route(api, incoming(api, request), warn)
    return answer instanceof Promise ? answer.catch(failure) : warned(answer)
  } catch (error) {
    // Warnings are sent even when the request is refused for another reason.
    return warned(failure(error))
  }
}

/** A request with its user. The user is authenticated and authorized before the object is looked up. */
function incoming({ auth, fallback }: ApiServerOptions, request: Request): Incoming {
  const { method, path, headers, body, signal } = request
  const [route = "", ...query] = path.split("?")
  let segments: string[]
  try {
    segments = route
      .split("/")
      .filter(segment => segment !== "")
      .map(decodeURIComponent)
  } catch {
    throw badRequest("invalid URL escape")
  }
  const asked = new URLSearchParams(query.join("?"))
  const user = auth.admit(headers, () => attributesOf(method, segments, asked), fallback)
  return { method, path: segments, query: asked, headers, body, signal, user }
}

function route(api: ApiServerOptions, request: Incoming, warn: (text: string) => void): Answer | Promise<Answer> {
  const { storage } = api
  const [root, ...rest] = request.path
  const served = () => [
    ...storage.kinds(),
    ...reviews.filter(({ group, plural }) => !storage.resource(group, "v1", plural)),
  ]
  if (root === undefined)
    return json({ paths: ["/api", "/apis", "/healthz", "/livez", "/openapi/v2", "/openapi/v3", "/readyz", "/version"] })
  if (root === "version") return json(serverVersion)
  if (["healthz", "livez", "readyz"].includes(root)) return text("ok")
  if (root === "openapi") return openApi(storage, rest, request.headers)
  if (root !== "api" && root !== "apis") return unknownPath()

  const isCore = root === "api"
  if (rest.length === 0) {
    if (wantsAggregated(request.headers))
      return json(aggregated(served(), isCore), 200, {
        "content-type": "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList",
      })
    if (isCore)
      return json({
        kind: "APIVersions",
        versions: ["v1"],
        serverAddressByClientCIDRs: [{ clientCIDR: "0.0.0.0/0", serverAddress: "127.0.0.1:443" }],
      })
    const groups = [...groupsOf(served())].filter(([group]) => group !== "")
    return json({
      kind: "APIGroupList",
      apiVersion: "v1",
      groups: groups.map(([group, versions]) => groupInfo(group, versions)),
    })
  }
  const [group = "", version, ...tail] = isCore ? ["", ...rest] : rest
  const inGroup = served().filter(kind => kind.group === group)
  if (inGroup.length === 0) return unknownPath()
  if (version === undefined)
    return json({ kind: "APIGroup", apiVersion: "v1", ...groupInfo(group, groupsOf(inGroup).get(group) ?? []) })
  const inVersion = inGroup.filter(kind => kind.version === version)
  if (inVersion.length === 0) {
    if (inGroup.some(kind => !("isCustom" in kind && kind.isCustom))) throw unknownResource()
    return unknownPath()
  }
  if (tail.length === 0) return json(resourceList(group, version, inVersion))

  const place = placeOf(tail)
  const review = reviews.find(each => each.group === group && each.version === version && each.plural === place.plural)
  if (review) {
    if (request.method !== "POST") throw methodNotAllowed()
    const options = writeOptions("Create", request.query, { userAgent: request.headers["user-agent"] })
    const { auth, clock } = api
    const asked = { auth, user: request.user, namespace: place.namespace, now: formatInstant(clock.now()) }
    return json(answerReview(review, bodyOf(request, review.kind), asked, options), 201)
  }
  const kind = inVersion.find(each => each.plural === place.plural) as ServedKind | undefined
  const isUnknown = !kind || place.extra || (place.namespace !== undefined && !kind.namespaced)
  if (isUnknown) {
    if (inVersion.some(each => "isCustom" in each && each.isCustom)) return unknownPath()
    throw unknownResource()
  }
  if (kind.namespaced && place.namespace === undefined && place.name !== undefined) throw unknownResource()
  if (kind.deprecation) warn(kind.deprecation)
  return call(api, { kind, ...place }, request, warn)
}

/** `namespaces/NS/PLURAL/NAME/SUBRESOURCE`. For a namespace itself, the first two segments are plural and name. */
function placeOf(tail: string[]) {
  const [first, second, third] = tail
  const isInside =
    first === "namespaces" && second !== undefined && third !== undefined && third !== "status" && third !== "finalize"
  const namespace = isInside ? second : undefined
  const [plural = "", name, subresource, ...extra] = isInside ? tail.slice(2) : tail
  return { namespace, plural, name, subresource, extra: extra.length > 0 }
}

function call(api: ApiServerOptions, target: Target, request: Incoming, warn: (text: string) => void): Answer {
  const { storage } = api
  const { kind, namespace, name, subresource } = target
  const { method, query } = request
  if (name === undefined) {
    if (method === "GET" || method === "HEAD") return listOrWatch(api, target, request)
    if (method === "POST" && kind.namespaced === (namespace !== undefined)) return create(api, target, request, warn)
    if (kind.isCustom && kind.namespaced && namespace === undefined) return unknownPath()
    if (method === "DELETE" && kind.verbs.includes("deletecollection"))
      return deleteCollection(api, target, request, warn)
    if (kind.isCustom && (method === "PUT" || method === "PATCH")) throw badRequest("name must be provided")
    throw methodNotAllowed()
  }
  const which: Name = { namespace, name }
  const isKnown = subresource === undefined || kind.subresources.includes(subresource) || isStream(kind, subresource)
  if (!isKnown) {
    throw kind.isCustom ? notFound(kind, name) : unknownResource()
  }
  const isPlain = subresource === undefined || subresource === "status" || subresource === "scale"
  if (!isPlain && subresource !== "finalize") {
    const body = method === "POST" && request.body ? bodyOf(request, kind.kind) : undefined
    const { auth, clock } = api
    const userAgent = request.headers["user-agent"]
    const asked = { storage, clock, auth, kind, name: which, method, query, userAgent, body }
    const answer = callSubresource(subresource, asked)
    if (answer) return answer
    throw methodNotAllowed()
  }
  if (method === "GET" && isPlain) {
    if (subresource === "scale") return json(scaleOf(kind, storage.get(kind, which)))
    checkRevision(storage, query.get("resourceVersion") ?? "")
    return shown(api, kind, storage.get(kind, which), request)
  }
  if (method === "PUT") return replace(api, { ...target, name }, request, warn)
  if (method === "PATCH" && isPlain) return patch(api, { ...target, name }, request, warn)
  if (method === "DELETE" && subresource === undefined) return remove(api, { ...target, name }, request, warn)
  throw methodNotAllowed()
}

/** A get may ask for a minimum revision. That holds unless the revision is in the future. */
function checkRevision({ store }: ServerStorage, text: string) {
  const asked = text === "" ? 0 : revisionOf(text, "watch")
  if (asked > store.revision) throw tooLarge(asked, store.revision)
}

/** These need a real container; the answer explains why there is none. */
const isStream = ({ plural }: ServedKind, subresource: string) =>
  plural === "pods" && ["exec", "attach", "portforward"].includes(subresource)

// ---- reading

function listOrWatch({ storage, clock, random }: ApiServerOptions, target: Target, request: Incoming): Answer {
  const { kind, namespace } = target
  const asked = listRequest(request.query)
  const form = formOf(kind, request, true)
  if (asked.isWatch) {
    const body = watchStream({ storage, clock, random, kind, namespace, request: asked, form, signal: request.signal })
    return { status: 200, headers: { "content-type": "application/json", "cache-control": "no-cache, private" }, body }
  }
  const { items, ...page } = listPage(storage, kind, namespace, asked)
  if (form.as === "table") return json(table(kind, items, { ...form, nowMs: clock.now(), metadata: page }))
  const metadata = listMetadata(kind, page)
  if (form.as === "metadata")
    return json({
      kind: "PartialObjectMetadataList",
      apiVersion: "meta.k8s.io/v1",
      metadata,
      items: items.map(partial),
    })
  return { ...json(""), body: listBody(kind, items, metadata) }
}

/** Lists of custom resources always have a continue token, even an empty one. */
const listMetadata = (kind: ServedKind, page: Omit<Page, "items">) => (kind.isCustom ? { continue: "", ...page } : page)

/** One object in the form that the client asks for. */
function shown({ clock }: ApiServerOptions, kind: ServedKind, object: Obj, request: Incoming, status = 200): Answer {
  const form = formOf(kind, request)
  if (form.as === "metadata") return json(partial(object), status)
  if (form.as === "object") return json(object, status)
  const metadata = { resourceVersion: object.metadata.resourceVersion }
  return json(table(kind, [object], { ...form, nowMs: clock.now(), metadata }), status)
}

// ---- writing

const applyType = "application/apply-patch+yaml"
const patchTypes: Record<string, PatchBody["type"]> = {
  "application/json-patch+json": "json",
  "application/merge-patch+json": "merge",
  "application/strategic-merge-patch+json": "strategic",
  [applyType]: "apply",
}

function optionsOf(
  { auth }: ApiServerOptions,
  verb: WriteVerb,
  target: Target,
  request: Incoming,
  warn: (text: string) => void,
): WriteOptions {
  const isApply = contentType(request) === applyType
  const options = writeOptions(verb, request.query, { userAgent: request.headers["user-agent"], isApply })
  const subresource = target.subresource as WriteOptions["subresource"]
  const { user, path, query } = request
  // An update that finds no object creates it, which needs the right to create.
  const authorizeCreate =
    verb === "Create" || user === superuser
      ? undefined
      : () => auth.require(user, { ...attributesOf("PUT", path, query), verb: "create" })
  const isText = isJsonText(request)
  return { ...options, warn, subresource, user, authorizeCreate, ...(isText && { text: request.body ?? "" }) }
}

function create(api: ApiServerOptions, target: Target, request: Incoming, warn: (text: string) => void): Answer {
  const { kind, namespace } = target
  if (!kind.verbs.includes("create")) throw methodNotAllowed()
  const options = optionsOf(api, "Create", target, request, warn)
  const body = bodyOf(request, kind.kind)
  return shown(api, kind, api.storage.create(kind, inNamespace(kind, body, namespace), options), request, 201)
}

function replace(
  api: ApiServerOptions,
  target: Target & { name: string },
  request: Incoming,
  warn: (text: string) => void,
): Answer {
  const { kind, namespace, name, subresource } = target
  const options = optionsOf(api, "Update", target, request, warn)
  const body = inNamespace(kind, bodyOf(request, kind.kind), namespace)
  const { object, isNew } = api.storage.put(kind, { namespace, name }, body, options)
  if (subresource === "scale") return json(scaleOf(kind, object))
  return shown(api, kind, object, request, isNew ? 201 : 200)
}

function patch(
  api: ApiServerOptions,
  target: Target & { name: string },
  request: Incoming,
  warn: (text: string) => void,
): Answer {
  const { kind, namespace, name, subresource } = target
  const type = patchTypes[contentType(request)]
  if (!type || (type === "strategic" && kind.isCustom)) throw unsupportedPatch(kind)
  const options = optionsOf(api, "Patch", target, request, warn)
  const body = type === "apply" ? yamlOf(request.body ?? "") : parsePatch(request.body ?? "", type)
  const { object, isNew } = api.storage.patchOrCreate(kind, { namespace, name }, { type, body }, options)
  if (subresource === "scale") return json(scaleOf(kind, object))
  return shown(api, kind, object, request, isNew ? 201 : 200)
}

/** The server's answer to a completed delete: for some kinds the object, for most a Status. */
function remove(
  api: ApiServerOptions,
  target: Target & { name: string },
  request: Incoming,
  warn: (text: string) => void,
): Answer {
  const { kind, namespace, name } = target
  const options = deleteOptions(request.query, request.body ? bodyOf(request, "DeleteOptions") : undefined)
  const { object, is } = api.storage.remove(kind, { namespace, name }, { ...options, user: request.user, warn })
  if (is === "marked") return shown(api, kind, object, request, options.orphanDependents === false ? 202 : 200)
  if (returnsDeleted.has(resourceName(kind))) return shown(api, kind, object, request)
  const details = { name, ...(kind.group && { group: kind.group }), kind: kind.plural, uid: object.metadata.uid }
  return json({ kind: "Status", apiVersion: "v1", metadata: {}, status: "Success", details })
}

const returnsDeleted = new Set([
  "namespaces",
  "persistentvolumeclaims",
  "persistentvolumes",
  "pods",
  "podtemplates",
  "resourcequotas",
  "serviceaccounts",
  "services",
  "csidrivers.storage.k8s.io",
  "csinodes.storage.k8s.io",
  "storageclasses.storage.k8s.io",
  "volumeattachments.storage.k8s.io",
])

function deleteCollection(
  { storage }: ApiServerOptions,
  target: Target,
  request: Incoming,
  warn: (text: string) => void,
): Answer {
  const { kind, namespace } = target
  if (kind.namespaced && namespace === undefined) throw methodNotAllowed()
  const options = deleteOptions(request.query, request.body ? bodyOf(request, "DeleteOptions") : undefined)
  const { labelSelector, fieldSelector } = listRequest(request.query)
  const { user } = request
  const items = storage.deleteCollection(kind, { namespace, labelSelector, fieldSelector }, { ...options, user, warn })
  const metadata = listMetadata(kind, { resourceVersion: String(storage.store.revision) })
  return { ...json(""), body: listBody(kind, items, metadata) }
}

function inNamespace(kind: ServedKind, body: Json, namespace: string | undefined): Json {
  const named = body?.metadata?.namespace
  if (!kind.namespaced || typeof body !== "object" || body === null) return body
  if (body.metadata !== undefined && (typeof body.metadata !== "object" || Array.isArray(body.metadata))) return body
  if (named && named !== namespace)
    throw badRequest("the namespace of the provided object does not match the namespace sent on the request")
  return { ...body, metadata: { ...body.metadata, namespace } }
}

// ---- bodies

const contentType = ({ headers }: Incoming) => (headers["content-type"] ?? "").split(";", 1)[0]?.trim() ?? ""

const isJsonText = (request: Incoming) => !contentType(request).endsWith("yaml") && request.body !== undefined

function bodyOf(request: Incoming, kind: string): Json {
  const type = contentType(request)
  if (type === "application/yaml") return yamlOf(request.body ?? "")
  if (type === "" || type === "application/json") return parseBody(request.body ?? "", kind)
  throw new StatusError(
    415,
    "UnsupportedMediaType",
    "the body of the request was in an unknown format - accepted media types include: application/json, application/yaml, application/vnd.kubernetes.protobuf",
  )
}

function unsupportedPatch(kind: ServedKind): StatusError {
  if (!kind.isCustom) return new StatusError(415, "UnsupportedMediaType", "415: Unsupported Media Type", {})
  const accepted = Object.keys(patchTypes).filter(type => !type.includes("strategic"))
  return new StatusError(
    415,
    "UnsupportedMediaType",
    `the body of the request was in an unknown format - accepted media types include: ${accepted.join(", ")}`,
  )
}

/** As kubectl and the server read it: YAML 1.1, where JSON is YAML. */
function yamlOf(body: string): Json {
  try {
    if (body.trimStart().startsWith("{")) return JSON.parse(body)
    return parseYaml(body, {
      version: "1.1",
      schema: "yaml-1.1",
      customTags: tags =>
        tags.filter(tag => (typeof tag === "string" ? tag !== "timestamp" : tag.tag !== "tag:yaml.org,2002:timestamp")),
    })
  } catch (error) {
    const why = error instanceof Error ? (error.message.split("\n")[0] ?? "") : String(error)
    const words = why.startsWith("Nested mappings") ? "mapping values are not allowed in this context" : why
    throw badRequest(`error decoding YAML: error converting YAML to JSON: yaml: ${words}`)
  }
}

// ---- negotiation

const accepted = ({ accept = "" }: Record<string, string>) =>
  accept
    .split(",")
    .map(part =>
      part
        .trim()
        .split(";")
        .map(each => each.trim()),
    )
    .map(([type = "", ...parameters]) => ({
      type,
      parameters: Object.fromEntries(parameters.map(each => each.split("=", 2) as [string, string])),
    }))

const isJson = (type: string) => ["", "*/*", "application/*", "application/json"].includes(type)

function formOf(kind: ServedKind, { headers, query }: Incoming, isCollection = false): Form {
  const parts = accepted(headers)
  for (const { type, parameters } of parts) {
    if (!isJson(type)) continue
    if (!parameters.as) return { as: "object" }
    if (parameters.g !== "meta.k8s.io" || parameters.v !== "v1") continue
    if (parameters.as === "Table") return { as: "table", include: includeOf(query) }
    if (parameters.as.startsWith("PartialObjectMetadata")) return { as: "metadata" }
  }
  const types = "application/json, application/yaml, application/vnd.kubernetes.protobuf"
  const streams = ", application/json;stream=watch, application/vnd.kubernetes.protobuf;stream=watch"
  if (kind.isCustom)
    throw new StatusError(406, "NotAcceptable", `only the following media types are accepted: ${types}`)
  throw new StatusError(
    406,
    "NotAcceptable",
    `406: Not Acceptable\n\nAvailable representations: ${types}${isCollection ? streams : ""}`,
    {},
  )
}

const wantsAggregated = (headers: Record<string, string>) =>
  accepted(headers).some(
    ({ type, parameters }) =>
      type === "application/json" &&
      parameters.as === "APIGroupDiscoveryList" &&
      parameters.g === "apidiscovery.k8s.io" &&
      parameters.v === "v2",
  )
