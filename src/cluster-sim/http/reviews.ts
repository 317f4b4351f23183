import { badRequest, cause, invalid } from "../apiserver/refusals.ts"
import type { WriteOptions } from "../apiserver/storage.ts"
import {
  type Attributes,
  type Auth,
  aggregated,
  fullAuthority,
  isSuperuser,
  TokenRefused,
  type User,
} from "../auth/index.ts"
import type { Json } from "../object.ts"
import { decode, kubernetesSchema, trackUpdate } from "../schema/index.ts"
import type { Cause } from "../status-error.ts"
import type { Served } from "./discovery.ts"

/** The context of a review. */
type Asked = { auth: Auth; user: User; namespace: string | undefined; now: string }

/** Kinds that are answered and not stored. */
export type Review = Served & { answer(body: Json, asked: Asked): Json }

const review = (group: string, kind: string, answer: Review["answer"], namespaced = false): Review => ({
  group,
  version: "v1",
  kind,
  plural: `${kind.toLowerCase()}s`,
  singular: kind.toLowerCase(),
  shortNames: [],
  categories: [],
  namespaced,
  verbs: ["create"],
  subresources: [],
  answer: (body, asked) => ({ kind, apiVersion: `${group}/v1`, ...answer(body, asked) }),
})

export const reviews: readonly Review[] = [
  review("authentication.k8s.io", "SelfSubjectReview", (_, { user, now }) => ({
    metadata: { creationTimestamp: now },
    status: { userInfo: userInfo(user) },
  })),
  review("authentication.k8s.io", "TokenReview", (body, { auth }) => answered(body, tokenStatus(body, auth))),
  review("authorization.k8s.io", "SelfSubjectAccessReview", (body, { auth, user }) => {
    check(wrongAccess(body, false))
    return answered(body, accessStatus(body, auth, user))
  }),
  review("authorization.k8s.io", "SubjectAccessReview", (body, { auth }) => {
    check(wrongAccess(body, true))
    return answered(body, accessStatus(body, auth, subjectOf(body)))
  }),
  review(
    "authorization.k8s.io",
    "LocalSubjectAccessReview",
    (sent, { auth, namespace }) => {
      const body = { ...sent, metadata: { ...sent.metadata, namespace } }
      check([...wrongAccess(body, true), ...wrongPlace(body)])
      return answered(body, accessStatus(body, auth, subjectOf(body)))
    },
    true,
  ),
  review("authorization.k8s.io", "SelfSubjectRulesReview", (body, { auth, user }) => {
    if (!body.spec?.namespace) throw badRequest("no namespace on request")
    return { metadata: {}, spec: {}, status: rulesStatus(auth, user, body.spec.namespace) }
  }),
]

const answered = (body: Json, status: Json): Json => ({ ...body, metadata: { ...body.metadata }, status })

const userInfo = ({ name, uid, groups, extra }: User): Json => ({
  username: name,
  ...(uid && { uid }),
  groups,
  ...(extra && Object.keys(extra).length > 0 && { extra }),
})

function tokenStatus({ spec = {} }: Json, auth: Auth): Json {
  if (!spec.token) throw badRequest("token is required for TokenReview in authentication")
  try {
    const { user, audiences } = auth.identify(spec.token, spec.audiences?.length ? spec.audiences : undefined)
    return { authenticated: true, user: userInfo(user), audiences }
  } catch (error) {
    if (error instanceof TokenRefused) return { user: {}, error: error.message }
    throw error
  }
}

const subjectOf = ({ spec }: Json): User => ({ name: spec.user ?? "", groups: spec.groups ?? [] })

function accessStatus({ spec }: Json, { authorize }: Auth, user: User): Json {
  const { resourceAttributes: on, nonResourceAttributes: at } = spec
  const attributes: Attributes = at ? { verb: at.verb ?? "", path: at.path ?? "" } : { verb: "", ...on }
  const { allowed, reason } = authorize(user, attributes)
  return { allowed, ...(reason && { reason }) }
}

/** All rules that bindings give, as written in the roles. */
function rulesStatus({ rulesOf }: Auth, user: User, namespace: string): Json {
  const { rules: bound, troubles } = rulesOf(user, namespace)
  // A superuser needs no roles. Without any, its rules are these.
  const rules = bound.length === 0 && isSuperuser(user) ? fullAuthority : bound
  const resourceRules = rules.flatMap(({ verbs, apiGroups, resources, resourceNames }) =>
    resources?.length ? [{ verbs, apiGroups, resources, ...(resourceNames?.length && { resourceNames }) }] : [],
  )
  const nonResourceRules = rules.flatMap(({ verbs, nonResourceURLs }) =>
    nonResourceURLs?.length ? [{ verbs, nonResourceURLs }] : [],
  )
  const evaluationError = troubles.length > 0 && { evaluationError: aggregated(troubles) }
  return { resourceRules, nonResourceRules, incomplete: false, ...evaluationError }
}

function check(causes: Cause[]) {
  // The server's message has no kind here.
  if (causes.length > 0) throw invalid({ group: "authorization.k8s.io", kind: "" }, "", causes)
}

function wrongAccess({ spec = {}, metadata = {} }: Json, hasSubject: boolean): Cause[] {
  const { resourceAttributes: on, nonResourceAttributes: at, user = "", groups = [] } = spec
  const causes: Cause[] = []
  if (on && at)
    causes.push(
      cause.invalid("spec.nonResourceAttributes", at, "cannot be specified in combination with resourceAttributes"),
    )
  if (!on && !at)
    causes.push(
      cause.invalid(
        "spec.resourceAttributes",
        null,
        "exactly one of nonResourceAttributes or resourceAttributes must be specified",
      ),
    )
  if (hasSubject && !user && groups.length === 0)
    causes.push(cause.invalid("spec.user", user, "at least one of user or group must be specified"))
  const { managedFields: _, namespace, ...meta } = metadata
  if (Object.keys(meta).length > 0)
    causes.push(cause.invalid("metadata", metadata, namespace ? "must be empty except for namespace" : "must be empty"))
  return causes
}

function wrongPlace({ spec, metadata: { namespace } }: Json): Cause[] {
  const { resourceAttributes: on, nonResourceAttributes: at } = spec ?? {}
  const causes: Cause[] = []
  if (on && (on.namespace ?? "") !== namespace)
    causes.push(cause.invalid("spec.resourceAttributes.namespace", on.namespace ?? "", "must match metadata.namespace"))
  if (at) causes.push(cause.invalid("spec.nonResourceAttributes", at, "disallowed on this kind of request"))
  return causes
}

/** A review with its answer. The server does not store it, but still sets its managedFields. */
export function answerReview(review: Review, sent: Json, asked: Asked, { fieldManager = "" }: WriteOptions): Json {
  const { group, version, kind } = review
  const apiVersion = `${group}/${version}`
  // A LocalSubjectAccessReview has the fields of a SubjectAccessReview.
  const schema = kubernetesSchema(apiVersion, kind.replace(/^Local/, ""))
  if (!schema) return review.answer(sent, asked)
  const body = decode(schema, { ...sent, apiVersion, kind }, { apiVersion, kind, validation: "Ignore" }).value
  const answer = review.answer(body, asked)
  if (!answer.spec || Object.keys(answer.spec).length === 0) return answer
  const managedFields = trackUpdate({
    ...{ schema, before: undefined, after: body, manager: fieldManager, apiVersion },
    now: asked.now,
  })
  return managedFields?.length ? { ...answer, metadata: { ...answer.metadata, managedFields } } : answer
}
