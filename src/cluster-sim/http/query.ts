import { badRequest, cause, invalid } from "../apiserver/refusals.ts"
import type { DeleteOptions, WriteOptions } from "../apiserver/storage.ts"
import type { Json } from "../object.ts"
import { managerName } from "../schema/index.ts"
import { type Cause, StatusError } from "../status-error.ts"

/** Query parameters and option bodies, parsed once at the edge, with the server's error messages. */

const inMeta = (kind: string) => ({ group: "meta.k8s.io", kind })

function flag(query: URLSearchParams, name: string): boolean | undefined {
  const value = query.get(name)
  if (value === null || value === "") return value === "" ? true : undefined
  return value !== "0" && value.toLowerCase() !== "false"
}

function whole(query: URLSearchParams, name: string): number | undefined {
  const value = query.get(name)
  if (value === null || value === "") return undefined
  if (!/^[+-]?\d+$/.test(value)) throw badRequest(`strconv.ParseInt: parsing ${JSON.stringify(value)}: invalid syntax`)
  return Number(value)
}

export type WriteVerb = "Create" | "Update" | "Patch"

/** Options of a write. `userAgent` names the manager where the query does not. */
export function writeOptions(
  verb: WriteVerb,
  query: URLSearchParams,
  { userAgent, isApply = false }: { userAgent: string | undefined; isApply?: boolean },
): WriteOptions {
  const causes: Cause[] = []
  const dryRun = query.getAll("dryRun").filter(value => value !== "")
  const fieldManager = query.get("fieldManager") ?? ""
  const fieldValidation = query.get("fieldValidation") ?? ""
  const force = flag(query, "force")
  if (isApply && fieldManager === "") causes.push(cause.required("fieldManager", "is required for apply patch"))
  if (!isApply && force !== undefined && verb === "Patch")
    causes.push(cause.forbidden("force", "may not be specified for non-apply patch"))
  if (fieldManager.length > 128) causes.push(cause.tooLong("fieldManager", 128))
  causes.push(...wrongDryRun(dryRun))
  if (!["", "Ignore", "Strict", "Warn"].includes(fieldValidation))
    causes.push(cause.notSupported("fieldValidation", fieldValidation, ["", "Ignore", "Strict", "Warn"]))
  if (causes.length > 0) throw invalid(inMeta(`${verb}Options`), "", causes)
  return {
    fieldManager: managerName(fieldManager, userAgent),
    ...(fieldManager && { namesManager: true }),
    dryRun: dryRun.length > 0,
    fieldValidation: (fieldValidation || "Warn") as NonNullable<WriteOptions["fieldValidation"]>,
    ...(force !== undefined && { force }),
  }
}

const wrongDryRun = (values: readonly string[]): Cause[] =>
  values.some(value => value !== "All")
    ? [
        {
          ...cause.notSupported("dryRun", "", ["All"]),
          message: `Unsupported value: ${JSON.stringify(values)}: supported values: "All"`,
        },
      ]
    : []

export type DeleteRequest = DeleteOptions & { orphanDependents?: boolean }

/** Options of a delete: from the body if there is one, otherwise from the query. */
export function deleteOptions(query: URLSearchParams, body: Json | undefined): DeleteRequest {
  const sent = body ?? {
    gracePeriodSeconds: whole(query, "gracePeriodSeconds"),
    propagationPolicy: query.get("propagationPolicy") ?? undefined,
    orphanDependents: flag(query, "orphanDependents"),
    dryRun: query.getAll("dryRun").filter(value => value !== ""),
  }
  if (sent.kind !== undefined && sent.kind !== "DeleteOptions")
    throw badRequest(
      `no kind "${sent.kind}" is registered for version "${sent.apiVersion ?? ""}" in scheme "pkg/runtime/scheme.go:111"`,
    )
  const causes: Cause[] = []
  const { propagationPolicy: policy, orphanDependents } = sent
  if (policy !== undefined && orphanDependents !== undefined)
    causes.push(
      cause.invalid("propagationPolicy", policy, "orphanDependents and deletionPropagation cannot be both set"),
    )
  if (policy !== undefined && !["Foreground", "Background", "Orphan"].includes(policy))
    causes.push(cause.notSupported("propagationPolicy", policy, ["Foreground", "Background", "Orphan", "nil"]))
  causes.push(...wrongDryRun(sent.dryRun ?? []))
  if (causes.length > 0) throw invalid(inMeta("DeleteOptions"), "", causes)
  const propagationPolicy =
    policy ?? (orphanDependents === undefined ? undefined : orphanDependents ? "Orphan" : "Background")
  return {
    ...(typeof sent.gracePeriodSeconds === "number" && { gracePeriodSeconds: sent.gracePeriodSeconds }),
    ...(propagationPolicy && { propagationPolicy }),
    ...(sent.preconditions && { preconditions: sent.preconditions }),
    ...(orphanDependents !== undefined && { orphanDependents }),
    dryRun: (sent.dryRun ?? []).length > 0,
  }
}

export type ListRequest = {
  labelSelector: string | undefined
  fieldSelector: string | undefined
  resourceVersion: string
  resourceVersionMatch: string
  limit: number
  continue: string
  isWatch: boolean
  allowWatchBookmarks: boolean
  sendInitialEvents: boolean | undefined
  timeoutSeconds: number | undefined
}

export function listRequest(query: URLSearchParams): ListRequest {
  const request: ListRequest = {
    labelSelector: query.get("labelSelector") ?? undefined,
    fieldSelector: query.get("fieldSelector") ?? undefined,
    resourceVersion: query.get("resourceVersion") ?? "",
    resourceVersionMatch: query.get("resourceVersionMatch") ?? "",
    limit: whole(query, "limit") ?? 0,
    continue: query.get("continue") ?? "",
    isWatch: flag(query, "watch") ?? false,
    allowWatchBookmarks: flag(query, "allowWatchBookmarks") ?? false,
    sendInitialEvents: flag(query, "sendInitialEvents"),
    timeoutSeconds: whole(query, "timeoutSeconds"),
  }
  const causes = request.isWatch ? wrongInWatch(request) : wrongInList(request)
  if (causes.length > 0) throw invalid(inMeta("ListOptions"), "", causes)
  return request
}

function wrongInList({
  resourceVersionMatch: match,
  resourceVersion,
  continue: token,
  sendInitialEvents,
}: ListRequest) {
  const causes: Cause[] = []
  const field = "resourceVersionMatch"
  if (match) {
    if (!resourceVersion)
      causes.push(cause.forbidden(field, "resourceVersionMatch is forbidden unless resourceVersion is provided"))
    if (token) causes.push(cause.forbidden(field, "resourceVersionMatch is forbidden when continue is provided"))
    if (match !== "Exact" && match !== "NotOlderThan")
      causes.push(cause.notSupported(field, match, ["Exact", "NotOlderThan", ""]))
    if (match === "Exact" && resourceVersion === "0")
      causes.push(cause.forbidden(field, 'resourceVersionMatch "exact" is forbidden for resourceVersion "0"'))
  }
  if (sendInitialEvents !== undefined)
    causes.push(cause.forbidden("sendInitialEvents", "sendInitialEvents is forbidden for list"))
  return causes
}

function wrongInWatch({ resourceVersionMatch: match, continue: token, sendInitialEvents }: ListRequest) {
  const causes: Cause[] = []
  const field = "resourceVersionMatch"
  if (sendInitialEvents !== undefined && match !== "NotOlderThan")
    causes.push(cause.forbidden(field, "sendInitialEvents requires setting resourceVersionMatch to NotOlderThan"))
  if (match) {
    if (sendInitialEvents === undefined)
      causes.push(
        cause.forbidden(field, "resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided"),
      )
    if (match !== "NotOlderThan") causes.push(cause.notSupported(field, match, ["NotOlderThan"]))
    if (token) causes.push(cause.forbidden(field, "resourceVersionMatch is forbidden when continue is provided"))
  }
  return causes
}

/** Parses a resourceVersion. The caller handles "" and "0". A list and a watch have different error messages. */
export function revisionOf(text: string, asked: "list" | "watch"): number {
  if (/^\d+$/.test(text)) return Number(text)
  const why = `resourceVersion: Invalid value: ${JSON.stringify(text)}: strconv.ParseUint: parsing ${JSON.stringify(text)}: invalid syntax`
  throw asked === "list" ? badRequest(`invalid resource version: ${why}`) : new StatusError(500, "", why)
}
