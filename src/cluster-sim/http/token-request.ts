import { formatInstant } from "#lib/instant.ts"
import type { Clock } from "#runtime/clock.ts"
import type { ServerStorage } from "../apiserver/create-storage.ts"
import type { ServedKind } from "../apiserver/kind.ts"
import { badRequest, cause, conflict, invalid, quote } from "../apiserver/refusals.ts"
import type { Name } from "../apiserver/storage.ts"
import { type Auth, issuer } from "../auth/index.ts"
import type { Json, Obj } from "../object.ts"
import { decode, kubernetesSchema, trackUpdate } from "../schema/index.ts"
import { type Answer, json } from "./answer.ts"
import { writeOptions } from "./query.ts"

export type TokenCall = {
  storage: ServerStorage
  clock: Clock
  auth: Auth
  kind: ServedKind
  name: Name
  query: URLSearchParams
  userAgent: string | undefined
  body: Json
}

const group = "authentication.k8s.io"
const kind = "TokenRequest"

/** A token for a service account. It becomes invalid at its expiry or when the object it is bound to is deleted. */
export function requestToken(call: TokenCall): Answer {
  const { storage, clock, auth, kind: accounts, name: which, body = {} } = call
  const { name, namespace = "" } = which
  checkPlace(body.metadata ?? {}, which)
  const account = storage.get(accounts, which)
  const { uid } = account.metadata
  const sentUid = body.metadata?.uid
  if (sentUid && sentUid !== uid)
    throw conflict(
      { group, plural: kind },
      name,
      `the UID in the token request (${sentUid}) does not match the UID of the service account (${uid})`,
    )
  const seconds = body.spec?.expirationSeconds ?? 3600
  checkSeconds(seconds)
  const reference = body.spec?.boundObjectRef ?? undefined
  const bound = reference && boundTo(storage, reference, which)
  const audiences = body.spec?.audiences?.length ? body.spec.audiences : [issuer]
  const token = auth.tokens.issue({ account, audiences, seconds, ...(bound && { bound }) })
  const creationTimestamp = formatInstant(clock.now())
  const spec = { audiences, expirationSeconds: seconds, boundObjectRef: reference ?? null }
  const status = { token, expirationTimestamp: formatInstant(clock.now() + seconds * 1000) }
  const managedFields = managedBy(call, { ...body, spec: { ...body.spec, expirationSeconds: seconds } })
  const metadata = {
    ...body.metadata,
    name,
    namespace,
    uid,
    creationTimestamp,
    ...(managedFields && { managedFields }),
  }
  return json({ kind, apiVersion: `${group}/v1`, metadata, spec, status }, 201)
}

/** A TokenRequest is not stored, but its answer still has managedFields. */
function managedBy({ query, userAgent, clock }: TokenCall, sent: Json) {
  const apiVersion = `${group}/v1`
  const schema = kubernetesSchema(apiVersion, kind)
  if (!schema) return undefined
  const { fieldManager: manager = "" } = writeOptions("Create", query, { userAgent })
  const after = decode(schema, { ...sent, apiVersion, kind }, { apiVersion, kind, validation: "Ignore" }).value
  const now = formatInstant(clock.now())
  return trackUpdate({ schema, before: undefined, after, manager, apiVersion, subresource: "token", now })
}

function checkPlace(sent: Json, { name, namespace }: Name) {
  const wrong = (field: string, value: string) =>
    invalid({ group, kind }, name, [
      cause.invalid(`metadata.${field}`, value, `must match the service account ${field} if specified`),
    ])
  if (sent.name && sent.name !== name) throw wrong("name", sent.name)
  if (sent.namespace && sent.namespace !== namespace)
    throw badRequest("the namespace of the provided object does not match the namespace sent on the request")
}

function checkSeconds(seconds: number) {
  const wrong = (why: string) => invalid({ group, kind }, "", [cause.invalid("spec.expirationSeconds", seconds, why)])
  if (seconds < 600) throw wrong("may not specify a duration less than 10 minutes")
  if (seconds > 2 ** 32) throw wrong("may not specify a duration larger than 2^32 seconds")
}

/** The object that a token is bound to; for a pod, its node too. */
function boundTo(storage: ServerStorage, reference: Json, { name: account, namespace }: Name) {
  const { kind = "", apiVersion = "", name = "", uid } = reference
  const served = apiVersion === "v1" && ["Pod", "Node", "Secret"].includes(kind) ? storage.kind("v1", kind) : undefined
  if (!served) throw badRequest(`cannot bind token to object of type ${typeText(apiVersion, kind)}`)
  const found = storage.get(served, served.namespaced ? { namespace, name } : { name })
  if (kind === "Pod" && found.spec?.serviceAccountName !== account)
    throw badRequest(
      `cannot bind token for serviceaccount ${quote(account)} to pod running with different serviceaccount name.`,
    )
  if (uid && uid !== found.metadata.uid)
    throw conflict(
      { group: "", plural: kind },
      name,
      `the UID in the bound object reference (${uid}) does not match the UID in record. The object might have been deleted and then recreated`,
    )
  const node = kind === "Pod" && found.spec?.nodeName ? nodeClaim(storage, found.spec.nodeName) : undefined
  return { ...(node && { node }), [kind.toLowerCase()]: claim(found) }
}

const claim = ({ metadata: { name, uid } }: Obj) => ({ name, uid })

/** A node that is gone is named without its uid. */
function nodeClaim(storage: ServerStorage, name: string) {
  const nodes = storage.kind("v1", "Node")
  const node = nodes && storage.find(nodes, { name })
  return node ? claim(node) : { name }
}

/** As Go prints a GroupVersionKind. */
function typeText(apiVersion: string, kind: string): string {
  const [group, version] = apiVersion.includes("/") ? apiVersion.split("/") : ["", apiVersion]
  return `${group}/${version}, Kind=${kind}`
}
