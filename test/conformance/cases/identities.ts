import type { Json, Script } from "../harness/script.ts"

/** Users of cases, and how they come by their rights. */

const group = "rbac.authorization.k8s.io"

export type Headers = Record<string, string>

/** A request in the name of a user, by the administrator. */
export const as = (user: string, inGroup?: string): Headers => ({
  "impersonate-user": user,
  ...(inGroup && { "impersonate-group": inGroup }),
})

export const bearer = (token: string): Headers => ({ authorization: `Bearer ${token}` })

/** A user's name that is this case's alone. */
export const anna = (on: Script) => `${on.id}-anna`

export const user = (name: string): Json => ({ apiGroup: group, kind: "User", name })
export const members = (name: string): Json => ({ apiGroup: group, kind: "Group", name })
export const account = (on: Script, name: string): Json => ({ kind: "ServiceAccount", namespace: on.namespace, name })
export const accountName = (on: Script, name: string) => `system:serviceaccount:${on.namespace}:${name}`

export const rule = (resources: string[], verbs: string[], more: Json = {}): Json => ({
  apiGroups: [""],
  resources,
  verbs,
  ...more,
})

export const role = (name: string, rules: Json[]): Json => ({ metadata: { name }, rules })

export const binding = (name: string, roleRef: string, ...subjects: Json[]): Json => {
  const [kind, of] = roleRef.split("/")
  return { metadata: { name }, roleRef: { apiGroup: group, kind, name: of }, subjects }
}

export type Question = { user?: string; groups?: string[]; verb: string; resource?: string; [field: string]: Json }

export const reviewOf = ({ user, groups, verb, path, ...attributes }: Question): Json => ({
  spec: {
    user,
    groups,
    ...(path ? { nonResourceAttributes: { verb, path } } : { resourceAttributes: { verb, ...attributes } }),
  },
})

export const accessReviews = "/apis/authorization.k8s.io/v1/subjectaccessreviews"

/** What a server says of a right. A real one learns of roles and bindings a little later than they are written. */
export async function answerTo(on: Script, question: Question): Promise<Json> {
  const { body } = await on.quietly.send("POST", accessReviews, { body: reviewOf(question) })
  return body.status
}

export const untilAllowed = (on: Script, question: Question, isAllowed = true) =>
  on.until(`${JSON.stringify(question)} is ${isAllowed ? "" : "not "}allowed`, async () => {
    const { allowed } = await answerTo(on, question)
    return allowed === isAllowed
  })

/** Gives a user rules in the case's namespace, and waits until they hold. */
export async function allow(on: Script, subject: Json, rules: Json[], name = "own"): Promise<void> {
  await on.quietly.create("roles", role(name, rules))
  await on.quietly.create("rolebindings", binding(name, `Role/${name}`, subject))
  await untilAllowed(on, questionOf(subject, rules[0], on.namespace))
}

/** The same in the whole cluster. */
export async function allowEverywhere(on: Script, subject: Json, rules: Json[], name = "own"): Promise<void> {
  const full = `${on.id}-${name}`
  await on.quietly.create("clusterroles", role(full, rules))
  await on.quietly.create("clusterrolebindings", binding(full, `ClusterRole/${full}`, subject))
  await untilAllowed(on, questionOf(subject, rules[0]))
}

function questionOf({ kind, name, namespace }: Json, rule: Json, where?: string): Question {
  const { verbs, apiGroups = [""], resources = [], resourceNames = [], nonResourceURLs = [] } = rule
  const asked =
    kind === "Group"
      ? { groups: [name] }
      : { user: kind === "User" ? name : `system:serviceaccount:${namespace}:${name}` }
  const any = (word: string, other: string) => (word === "*" ? other : word)
  if (nonResourceURLs[0]) return { ...asked, verb: any(verbs[0], "get"), path: nonResourceURLs[0].replace("*", "x") }
  const [resource, subresource] = any(resources[0], "pods").split("/") as [string, string | undefined]
  return {
    ...asked,
    verb: any(verbs[0], "get"),
    group: any(apiGroups[0], ""),
    resource: any(resource, "pods"),
    ...(subresource && { subresource }),
    ...(resourceNames[0] && { name: resourceNames[0] }),
    ...(where && { namespace: where }),
  }
}

/** A new service account of the case and a token of it. */
export async function newAccount(on: Script, name: string, spec: Json = {}): Promise<string> {
  await on.quietly.create("serviceaccounts", { metadata: { name } })
  return tokenOf(on, name, spec)
}

export async function tokenOf(on: Script, name: string, spec: Json = {}): Promise<string> {
  const { body } = await on.quietly.send("POST", `${on.path("serviceaccounts", name)}/token`, { body: { spec } })
  return body.status.token
}

/** The user that the server sees behind a request. */
export const whoami = (on: Script, headers: Headers) =>
  on.send("POST", "/apis/authentication.k8s.io/v1/selfsubjectreviews", { body: {}, headers })
