import { decisionAnnotation } from "#core/image/record.ts"
import type { Api } from "#tools/kube/api.ts"
import { failing, podOf, podsPath, policyPaths, source, sourcesPath, switched } from "./alternate-sources.ts"
import { type Answer, ask } from "./ask.ts"
import type { Access, Json } from "./floor.ts"

/** A tenant that may manage AlternateImageSources and some workloads in a namespace, and what it tries beyond that. */

export const evil = "evil.example.com/team/app"
export const app = { name: "app", image: `${failing}:v1` }

/** A cluster, as its administrator. */
export type Place = { api: Api; access: Access }

export type World = Place & { mine: string; theirs: string; tenant: Access }

/** Two namespaces with the same in them, and a tenant of the first. */
export async function tenantsWorld(place: Place, mine: string, theirs: string): Promise<World> {
  for (const namespace of [mine, theirs]) {
    await place.api.create(`/api/v1/namespaces/${namespace}/secrets`, secret)
    for (const kind of ["deployments", "statefulsets"]) await place.api.create(appsPath(namespace, kind), workload)
  }
  return { ...place, mine, theirs, tenant: await tenantOf(mine, place) }
}

const secret = { metadata: { name: "account" }, stringData: { password: "not for tenants" } }
const workload = {
  metadata: { name: "web" },
  spec: {
    replicas: 0,
    serviceName: "web",
    selector: { matchLabels: { app: "web" } },
    template: { metadata: { labels: { app: "web" } }, spec: podOf([app]).spec },
  },
}
export const appsPath = (namespace: string, kind: string) => `/apis/apps/v1/namespaces/${namespace}/${kind}`
const rbac = "/apis/rbac.authorization.k8s.io/v1"

export const forTarget = (type: Json, target: Json = { name: "web" }): Json => ({
  imageSourceReplacements: [{ equivalentRepositories: [failing, evil], targets: [{ type, ...target }] }],
})
export const forRepository = (repository: string): Json => ({
  imageSourceReplacements: [{ equivalentRepositories: [failing, repository] }],
})

/** Like the role `edit`, with AlternateImageSources and without Secrets and StatefulSets. */
async function tenantOf(namespace: string, { api, access }: Place): Promise<Access> {
  const verbs = ["get", "list", "watch", "create", "update", "patch", "delete"]
  const rules = [
    { apiGroups: ["autoimagemanager.io"], resources: ["alternateimagesources"], verbs },
    { apiGroups: ["apps"], resources: ["deployments"], verbs },
    { apiGroups: [""], resources: ["pods", "configmaps"], verbs },
  ]
  const metadata = { name: "tenant" }
  const accounts = `/api/v1/namespaces/${namespace}/serviceaccounts`
  await api.create(accounts, { metadata })
  await api.create(`${rbac}/namespaces/${namespace}/roles`, { metadata, rules })
  await api.create(`${rbac}/namespaces/${namespace}/rolebindings`, {
    metadata,
    roleRef: { apiGroup: "rbac.authorization.k8s.io", kind: "Role", name: "tenant" },
    subjects: [{ kind: "ServiceAccount", namespace, name: "tenant" }],
  })
  const { status } = await api.create(`${accounts}/tenant/token`, { spec: { expirationSeconds: 3600 } })
  return { ...access, token: status.token }
}

/** Everything that is not the tenant's to change, by version. */
export async function whatIsNotTheirs({ mine, theirs, api }: World): Promise<Json> {
  const lists = [
    sourcesPath(theirs),
    podsPath(theirs),
    ...["deployments", "statefulsets", "replicasets"].map(kind => appsPath(theirs, kind)),
    appsPath(mine, "statefulsets"),
    ...[mine, theirs].flatMap(namespace => [
      `/api/v1/namespaces/${namespace}/secrets`,
      `${rbac}/namespaces/${namespace}/roles`,
      `${rbac}/namespaces/${namespace}/rolebindings`,
    ]),
  ]
  const versions: Json = {}
  for (const list of lists)
    for (const { metadata } of (await api.get(list)).items) versions[`${list}/${metadata.name}`] = versionOf(metadata)
  for (const path of policyPaths) versions[path] = versionOf((await api.get(path)).metadata)
  return versions
}

/** What moves with each change but those that the controllers of Kubernetes make to the status of what they look after. */
const versionOf = ({ uid, generation, resourceVersion, annotations }: Json) =>
  [uid, generation ?? resourceVersion, annotations?.[decisionAnnotation]].join(" ")

type Attempt = (world: World, as: { access: Access }) => Promise<Answer>
const strict = "?fieldValidation=Strict"

export type Refusal = "rights" | "policy" | "schema" | "malformed"

/** What refuses it, and how the tenant tries. */
export const refused: Record<string, [Refusal, Attempt]> = {
  "an AlternateImageSource in another namespace": [
    "rights",
    ({ theirs }, as) => ask("POST", sourcesPath(theirs), source("web"), as),
  ],
  "one that says it is in another namespace": [
    "malformed",
    ({ mine, theirs }, as) => {
      const object = source("web")
      return ask("POST", sourcesPath(mine), { ...object, metadata: { name: "web", namespace: theirs } }, as)
    },
  ],
  "a path out of the own namespace": [
    "rights",
    ({ mine, theirs }, as) => ask("POST", sourcesPath(`${mine}/../${theirs}`), source("web"), as),
  ],
  "an encoded path out of the own namespace": [
    "rights",
    ({ mine, theirs }, as) => ask("POST", sourcesPath(`${mine}%2f..%2f${theirs}`), source("web"), as),
  ],
  "changing what others have": [
    "rights",
    ({ theirs }, as) => ask("PATCH", sourcesPath(theirs, "theirs"), { spec: forRepository(evil) }, as),
  ],
  "deleting what others have": [
    "rights",
    ({ theirs }, as) => ask("DELETE", sourcesPath(theirs, "theirs"), undefined, as),
  ],
  "listing those of all namespaces": [
    "rights",
    (_, as) => ask("GET", "/apis/autoimagemanager.io/v1alpha1/alternateimagesources", undefined, as),
  ],
  "a pod in another namespace": ["rights", ({ theirs }, as) => ask("POST", podsPath(theirs), podOf([app]), as)],
  "a field for a namespace in a target": [
    "malformed",
    ({ mine, theirs }, as) =>
      ask(
        "POST",
        sourcesPath(mine) + strict,
        source("web", forTarget({ kind: "pod" }, { name: "web", namespace: theirs })),
        as,
      ),
  ],
  "a field for a Secret": [
    "malformed",
    ({ mine }, as) => ask("POST", sourcesPath(mine) + strict, source("web", { pullSecret: "account" }), as),
  ],
  "a kind that the tenant may not patch": [
    "policy",
    ({ mine }, as) =>
      ask("POST", sourcesPath(mine), source("web", forTarget({ group: "apps", kind: "StatefulSet" })), as),
  ],
  "the same without its group and in other letters": [
    "policy",
    ({ mine }, as) => ask("POST", sourcesPath(mine), source("web", forTarget({ kind: "sTATEFULsETS" })), as),
  ],
  "the same by labels": [
    "policy",
    ({ mine }, as) =>
      ask("POST", sourcesPath(mine), source("web", forTarget({ kind: "statefulset" }, { labelSelector: {} })), as),
  ],
  "the same among 63 that the tenant may patch": [
    "policy",
    ({ mine }, as) => {
      const targets = Array.from({ length: 64 }, (_, i) => ({
        type: { kind: i === 40 ? "statefulset" : "deployment" },
        name: `web-${i}`,
      }))
      const imageSourceReplacements = [{ equivalentRepositories: [failing, evil], targets }]
      return ask("POST", sourcesPath(mine), source("web", { imageSourceReplacements }), as)
    },
  ],
  "the same as a change afterwards": [
    "policy",
    ({ mine }, as) => ask("PATCH", sourcesPath(mine, "mine"), { spec: forTarget({ kind: "statefulset" }) }, as),
  ],
  "the same by server-side apply": [
    "policy",
    ({ mine }, as) =>
      ask(
        "PATCH",
        `${sourcesPath(mine, "mine")}?fieldManager=tenant&force=true`,
        source("mine", forTarget({ kind: "statefulset" })),
        {
          ...as,
          headers: { "content-type": "application/apply-patch+yaml" },
        },
      ),
  ],
  "every template of the namespace": [
    "policy",
    ({ mine }, as) => ask("POST", sourcesPath(mine), source("web", { policy: { apply: "Template" } }), as),
  ],
  "the status, to send pods elsewhere": [
    "rights",
    ({ mine }, as) =>
      ask("PATCH", `${sourcesPath(mine, "mine")}/status`, { status: { targetsAvailable: [switched("app")] } }, as),
  ],
  "a repository with an account in it": ["schema", ({ mine }, as) => create(mine, `user:password@${evil}`, as)],
  "a repository with a scheme": ["schema", ({ mine }, as) => create(mine, `http://${evil}`, as)],
  "a repository with a way up": ["schema", ({ mine }, as) => create(mine, `${failing}/../../other/app`, as)],
  "a repository with a query": ["schema", ({ mine }, as) => create(mine, `${evil}?x=`, as)],
  "a repository with a fragment": ["schema", ({ mine }, as) => create(mine, `${evil}#x`, as)],
  "a repository with an encoded slash": ["schema", ({ mine }, as) => create(mine, `${evil}%2f..`, as)],
  "a repository with a line break": ["schema", ({ mine }, as) => create(mine, `${evil}\nHost: x`, as)],
  "a repository with a tag of its own": ["schema", ({ mine }, as) => create(mine, `${evil}:v1`, as)],
  "a repository with a digest of its own": [
    "schema",
    ({ mine }, as) => create(mine, `${evil}@sha256:${"0".repeat(64)}`, as),
  ],
  "a Secret of the own namespace": [
    "rights",
    ({ mine }, as) => ask("GET", `/api/v1/namespaces/${mine}/secrets/account`, undefined, as),
  ],
  "a Secret of another namespace": [
    "rights",
    ({ theirs }, as) => ask("GET", `/api/v1/namespaces/${theirs}/secrets/account`, undefined, as),
  ],
  "a token of another account": [
    "rights",
    ({ mine }, as) => ask("POST", `/api/v1/namespaces/${mine}/serviceaccounts/default/token`, { spec: {} }, as),
  ],
  "to be another user": [
    "rights",
    ({ theirs }, as) =>
      ask("POST", sourcesPath(theirs), source("web"), { ...as, headers: { "impersonate-user": "system:admin" } }),
  ],
  "a grant for the controllers": [
    "rights",
    ({ mine }, as) => ask("POST", `${rbac}/namespaces/${mine}/rolebindings`, grant, as),
  ],
  "a policy less": ["rights", (_, as) => ask("DELETE", policyPaths[0]!, undefined, as)],
  "a binding less": ["rights", (_, as) => ask("DELETE", policyPaths[1]!, undefined, as)],
  "a binding that takes its parameters from elsewhere": [
    "rights",
    ({ theirs }, as) => ask("PATCH", policyPaths.at(-1)!, { spec: { paramRef: { namespace: theirs } } }, as),
  ],
}

export function refusalOf({ status, body }: Answer): string {
  const { message } = body
  const isOurs = message?.includes("ValidatingAdmissionPolicy 'aim-alternateimagesource-author'")
  if (status === 403 && isOurs) return "policy" satisfies Refusal
  if (status === 403 && /forbidden: User "[^"]*" cannot /.test(message)) return "rights" satisfies Refusal
  if (status === 422 && message.includes("spec.imageSourceReplacements[0]")) return "schema" satisfies Refusal
  return status === 400 ? ("malformed" satisfies Refusal) : `${status}: ${message}`
}

const create = (namespace: string, repository: string, as: { access: Access }) =>
  ask("POST", sourcesPath(namespace), source("web", forRepository(repository)), as)
const grant = {
  metadata: { name: "grant" },
  roleRef: { apiGroup: "rbac.authorization.k8s.io", kind: "ClusterRole", name: "aim-target" },
  subjects: [{ kind: "ServiceAccount", namespace: "default", name: "default" }],
}
