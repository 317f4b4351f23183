import type { WriteOptions } from "../apiserver/storage.ts"
import type { Json } from "../object.ts"
import { decode, kubernetesSchema, trackUpdate } from "../schema/index.ts"
import type { Served } from "./discovery.ts"

/** Kinds that are asked and not kept: nobody is refused anything here, and everybody is the same user. */
export type Review = Served & { answer(body: Json, now: string): Json }

const user = { username: "system:admin", groups: ["system:masters", "system:authenticated"] }

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
  answer: (body, now) => ({ kind, apiVersion: `${group}/v1`, ...answer(body, now) }),
})

const answered = (body: Json, status: Json): Json => ({ ...body, metadata: { ...body.metadata }, status })

const allowed = (body: Json) => answered(body, { allowed: true })

export const reviews: readonly Review[] = [
  review("authentication.k8s.io", "SelfSubjectReview", (body, now) => ({
    ...answered(body, { userInfo: user }),
    metadata: { creationTimestamp: now },
  })),
  review("authentication.k8s.io", "TokenReview", body => answered(body, { authenticated: true, user })),
  review("authorization.k8s.io", "SelfSubjectAccessReview", allowed),
  review("authorization.k8s.io", "SubjectAccessReview", allowed),
  review("authorization.k8s.io", "LocalSubjectAccessReview", allowed, true),
  review("authorization.k8s.io", "SelfSubjectRulesReview", body =>
    answered(body, {
      resourceRules: [{ verbs: ["*"], apiGroups: ["*"], resources: ["*"] }],
      nonResourceRules: [{ verbs: ["*"], nonResourceURLs: ["*"] }],
      incomplete: false,
    }),
  ),
]

/** A review with its answer. The server keeps none of it, and says all the same who asked for what. */
export function answerReview(review: Review, body: Json, now: string, { fieldManager = "" }: WriteOptions): Json {
  const answer = review.answer(body, now)
  const { apiVersion, kind } = answer
  const schema = kubernetesSchema(apiVersion, kind)
  if (!schema) return answer
  const after = decode(schema, { ...body, apiVersion, kind }, { apiVersion, kind, validation: "Ignore" }).value
  const managedFields = trackUpdate({ schema, before: undefined, after, manager: fieldManager, apiVersion, now })
  return managedFields?.length ? { ...answer, metadata: { ...answer.metadata, managedFields } } : answer
}
