import { expect } from "vitest"
import { namesOf } from "#api/names.ts"
import { type Answer, ask } from "./ask.ts"
import { type Access, type Api, type Json, until } from "./floor.ts"

/** What accounts try beyond their rights on requests, pull jobs and NodeImages, and what refuses it. */

type Place = { api: Api; access: Access }

const { group, version } = namesOf("NodeImage")
const apiVersion = `${group}/${version}`
const nodeImages = `/apis/${apiVersion}/${namesOf("NodeImage").plural}`
const plurals = { crr: "ContainerRecreateRequest", ipj: "ImagePullJob", ilpj: "ImageListPullJob" } as const
type Short = keyof typeof plurals

const requestSpec = { podName: "web", containers: [{ name: "app" }] }
const byPods = { podSelector: { matchLabels: { app: "web" } } }
const image = "registry.example.com/team/app:v1"

export const pathOf = (namespace: string, short: Short, name = "") =>
  `/apis/${apiVersion}/namespaces/${namespace}/${namesOf(plurals[short]).plural}${name && `/${name}`}`
export const nodeImagePath = (node: string) => `${nodeImages}/${node}`
const objectOf = (short: Short, name: string, spec: Json): Json => ({
  apiVersion,
  kind: plurals[short],
  metadata: { name },
  spec,
})
const job = (name: string, spec: Json) => objectOf("ipj", name, { image, ...spec })
const list = (name: string, spec: Json) => objectOf("ilpj", name, { images: [image], ...spec })
const request = (name: string, spec: Json = {}) => objectOf("crr", name, { ...requestSpec, ...spec })
const emptyNodeImage = (node: string): Json => ({
  apiVersion,
  kind: "NodeImage",
  metadata: { name: node },
  spec: { images: {} },
})

const policies = {
  node: "aim-agent-node",
  nodeImage: "aim-nodeimage-agent",
  requestAuthor: "aim-containerrecreaterequest-author",
  jobAuthor: "aim-imagepulljob-author",
} as const

/** The policy's name, or what else refused. */
export function refusalOf({ status, body }: Answer): string {
  const policy = /ValidatingAdmissionPolicy '([^']*)'/.exec(body.message)?.[1]
  if (status === 403 && policy) return policy
  if (status === 403 && /forbidden: User "[^"]*" cannot /.test(body.message)) return "rights"
  const words: Record<number, string> = { 400: "malformed", 401: "token", 422: "schema" }
  return words[status] ?? `${status}: ${body.message}`
}

type As = { access: Access; headers?: Record<string, string> }

// Agents.

/** Node `a` is the agent's own. */
export type AgentsWorld = Place & { namespace: string; a: string; b: string }

/** With the printed role, and with a role that leaves everything to the policies; the same where only one is given. */
type AgentAttempt = [refusal: string, withAnyRight: string, (world: AgentsWorld, as: As) => Promise<Answer>]

/** Requests of both nodes and of none, and both nodes' NodeImages. */
export async function prepareAgentsWorld({ api, namespace, a, b }: AgentsWorld): Promise<void> {
  for (const [name, nodeName] of Object.entries({ "of-a": a, "of-b": b, "of-none": "" })) {
    await api.create(pathOf(namespace, "crr"), request(name))
    if (nodeName === "") continue
    const state = { name: "app", phase: "Pending", containerID: "containerd://1", restartCount: 0 }
    const status = { phase: "Recreating", nodeName, podUID: "uid-of-the-pod", containerRecreateStates: [state] }
    await api.patch(`${pathOf(namespace, "crr", name)}/status`, { status })
  }
  for (const node of [a, b]) {
    if (!(await api.find(nodeImagePath(node)))) await api.create(nodeImages, emptyNodeImage(node))
    await api.patch(`${nodeImagePath(node)}/status`, { status: { publicKey: "VGhlaXJz" } })
  }
}

/** Sends the whole object with a change, as a controller's update does. */
async function put({ api }: Place, path: string, change: (object: Json) => Json, as: As): Promise<Answer> {
  return ask("PUT", path, change(await api.get(path.replace(/\/status$/, ""))), as)
}
const putStatus = (world: Place, path: string, status: Json, as: As) =>
  put(world, `${path}/status`, object => ({ ...object, status: { ...object.status, ...status } }), as)
const label = (object: Json) => ({ ...object, metadata: { ...object.metadata, labels: { mine: "yes" } } })

const own = ({ namespace }: AgentsWorld) => pathOf(namespace, "crr", "of-a")
const others = ({ namespace }: AgentsWorld) => pathOf(namespace, "crr", "of-b")
const noNodes = ({ namespace }: AgentsWorld) => pathOf(namespace, "crr", "of-none")
const summary = { message: "from elsewhere" }
const evil = { images: { "evil.example.com/app": { tags: [{ tag: "1" }] } } }
const onlyRights = (attempt: AgentAttempt[2]): AgentAttempt => ["rights", "rights", attempt]
const { node, nodeImage } = policies

export const agentAttempts: Record<string, AgentAttempt> = {
  "the status of another node's request": [node, node, (world, as) => putStatus(world, others(world), summary, as)],
  "taking over another node's request": [
    ...([node, node] as const),
    (world, as) => putStatus(world, others(world), { nodeName: world.a }, as),
  ],
  "taking over a request of no node": [
    ...([node, node] as const),
    (world, as) => putStatus(world, noNodes(world), { nodeName: world.a }, as),
  ],
  "giving its request to another node": [
    ...([node, node] as const),
    (world, as) => putStatus(world, own(world), { nodeName: world.b }, as),
  ],
  "the end of its request": [
    ...([node, node] as const),
    (world, as) => putStatus(world, own(world), { phase: "Completed" }, as),
  ],
  "another pod for its request": [
    ...([node, node] as const),
    (world, as) => putStatus(world, own(world), { podUID: "another" }, as),
  ],
  "the status of its request by a patch": onlyRightsOr(node, (world, as) =>
    ask("PATCH", `${others(world)}/status`, { status: summary }, as),
  ),
  "labels of its request": onlyRightsOr(node, (world, as) => put(world, own(world), label, as)),
  "a new request": onlyRightsOr(node, ({ namespace }, as) =>
    ask("POST", pathOf(namespace, "crr"), request("of-agent"), as),
  ),
  "its request deleted": onlyRightsOr(node, (world, as) => ask("DELETE", own(world), undefined, as)),
  "all requests deleted": onlyRightsOr(node, ({ namespace }, as) =>
    ask("DELETE", pathOf(namespace, "crr"), undefined, as),
  ),
  "another node's key": [
    ...([nodeImage, nodeImage] as const),
    (world, as) => putStatus(world, nodeImagePath(world.b), { publicKey: "TWluZQ" }, as),
  ],
  "another node's images as there": [
    ...([nodeImage, nodeImage] as const),
    (world, as) => putStatus(world, nodeImagePath(world.b), { succeeded: 1 }, as),
  ],
  "images for its own node": onlyRightsOr(nodeImage, (world, as) =>
    put(world, nodeImagePath(world.a), object => ({ ...object, spec: evil }), as),
  ),
  "images for another node": onlyRightsOr(nodeImage, (world, as) =>
    ask("PATCH", nodeImagePath(world.b), { spec: evil }, as),
  ),
  "a NodeImage of its own": onlyRightsOr(nodeImage, (_, as) => ask("POST", nodeImages, emptyNodeImage("new"), as)),
  "another node's NodeImage deleted": onlyRightsOr(nodeImage, ({ b }, as) =>
    ask("DELETE", nodeImagePath(b), undefined, as),
  ),
  "pods of all namespaces": onlyRights((_, as) => ask("GET", "/api/v1/pods", undefined, as)),
  "a Secret": onlyRights(({ namespace }, as) =>
    ask("GET", `/api/v1/namespaces/${namespace}/secrets/account`, undefined, as),
  ),
  "its own node": onlyRights(({ a }, as) => ask("GET", `/api/v1/nodes/${a}`, undefined, as)),
  "a pull job": onlyRights(({ namespace }, as) => ask("POST", pathOf(namespace, "ipj"), job("of-agent", byPods), as)),
  "an event": onlyRights(({ namespace }, as) => ask("POST", `/api/v1/namespaces/${namespace}/events`, {}, as)),
  "a token for another pod": onlyRights((_, as) =>
    ask("POST", "/api/v1/namespaces/aim-agents/serviceaccounts/aim-agent/token", { spec: {} }, as),
  ),
  "to be the agent of another node": onlyRights((world, { access }) =>
    putStatus(world, nodeImagePath(world.b), summary, {
      access,
      headers: {
        "impersonate-user": "system:serviceaccount:aim-agents:aim-agent",
        "impersonate-extra-authentication.kubernetes.io%2fnode-name": world.b,
      },
    }),
  ),
}

function onlyRightsOr(policy: string, attempt: AgentAttempt[2]): AgentAttempt {
  return ["rights", policy, attempt]
}

/** What a token that is bound to no node, or to a pod that is gone, must not do either. */
export const ownWrites: Record<string, (world: AgentsWorld, as: As) => Promise<Answer>> = {
  "its own request": (world, as) => putStatus(world, own(world), summary, as),
  "its own NodeImage": (world, as) => putStatus(world, nodeImagePath(world.a), { runtime: "some runtime" }, as),
}

/** Everything that must not have changed, by version; `except` names what controllers write at any time. */
export async function versionsOf(
  api: Api,
  paths: readonly string[],
  { except }: { except?: "status" } = {},
): Promise<Json> {
  const of = ({ uid, generation, resourceVersion }: Json) =>
    `${uid} ${except === "status" ? (generation ?? resourceVersion) : resourceVersion}`
  const versions: Json = {}
  for (const path of paths) {
    const { items, metadata } = await api.get(path)
    if (!items) versions[path] = of(metadata)
    for (const item of items ?? []) versions[`${path}/${item.metadata.name}`] = of(item.metadata)
  }
  return versions
}

// Authors.

/** `tenant` may manage requests and jobs, `keeper` patch pods and get Secrets too, `owner` everything in its namespace. */
type AuthorsWorld = Place & {
  mine: string
  theirs: string
  accounts: { tenant: Access; keeper: Access; owner: Access }
}

type AuthorAttempt = [
  account: keyof AuthorsWorld["accounts"],
  refusal: string,
  (world: AuthorsWorld, as: As) => Promise<Answer>,
]

const strict = "?fieldValidation=Strict"
const applied = { "content-type": "application/apply-patch+yaml" }
const { requestAuthor, jobAuthor } = policies
const direct = { selector: { names: ["node"] } }
const withSecrets = { ...byPods, pullSecrets: ["account"] }
const post = (short: Short, object: Json) => (world: AuthorsWorld, as: As) =>
  ask("POST", pathOf(world.mine, short), object, as)

const authorAttempts: Record<string, AuthorAttempt> = {
  "a restart without the right to patch pods": ["tenant", requestAuthor, post("crr", request("new"))],
  "the same under a name that the server makes": [
    ...(["tenant", requestAuthor] as const),
    post("crr", { ...request("new"), metadata: { generateName: "new-" } }),
  ],
  "the same by server-side apply": [
    ...(["tenant", requestAuthor] as const),
    ({ mine }, as) =>
      ask("PATCH", `${pathOf(mine, "crr", "new")}?fieldManager=tenant`, request("new"), { ...as, headers: applied }),
  ],
  "a restart in another namespace": [
    ...(["owner", "rights"] as const),
    ({ theirs }, as) => ask("POST", pathOf(theirs, "crr"), request("new"), as),
  ],
  "a request that says it is in another namespace": [
    ...(["keeper", "malformed"] as const),
    ({ mine, theirs }, as) =>
      ask("POST", pathOf(mine, "crr"), { ...request("new"), metadata: { name: "new", namespace: theirs } }, as),
  ],
  "a pod of another namespace": ["keeper", "schema", post("crr", request("new", { podName: "../theirs/web" }))],
  "another pod for a request that is there": [
    ...(["keeper", "schema"] as const),
    ({ mine }, as) => ask("PATCH", pathOf(mine, "crr", "mine"), { spec: { podName: "other" } }, as),
  ],
  "a command of its own before the stop": [
    ...(["keeper", "malformed"] as const),
    ({ mine }, as) => {
      const containers = [{ name: "app", preStop: { exec: { command: ["reboot"] } } }]
      return ask("POST", pathOf(mine, "crr") + strict, request("new", { containers }), as)
    },
  ],
  "the container that is stopped": [
    ...(["keeper", "rights"] as const),
    ({ mine }, as) => {
      const containerRecreateStates = [{ name: "app", phase: "Pending", containerID: "containerd://another" }]
      return ask("PATCH", `${pathOf(mine, "crr", "mine")}/status`, { status: { containerRecreateStates } }, as)
    },
  ],
  "nodes by name": ["keeper", jobAuthor, post("ipj", job("new", direct))],
  "nodes by labels": ["keeper", jobAuthor, post("ipj", job("new", { selector: { matchLabels: { zone: "a" } } }))],
  "every node": ["keeper", jobAuthor, post("ipj", job("new", {}))],
  "every node, as the owner of the namespace": ["owner", jobAuthor, post("ipj", job("new", {}))],
  "nodes by name in a list, as the owner of the namespace": ["owner", jobAuthor, post("ilpj", list("new", direct))],
  "nodes by name, as a change afterwards": [
    ...(["keeper", jobAuthor] as const),
    ({ mine }, as) => ask("PATCH", pathOf(mine, "ipj", "mine"), { spec: { ...direct, podSelector: null } }, as),
  ],
  "every node, by server-side apply": [
    ...(["keeper", jobAuthor] as const),
    ({ mine }, as) =>
      ask("PATCH", `${pathOf(mine, "ipj", "new")}?fieldManager=tenant`, job("new", {}), { ...as, headers: applied }),
  ],
  "a Secret that it may not read": ["tenant", jobAuthor, post("ipj", job("new", withSecrets))],
  "the same in a list": ["tenant", jobAuthor, post("ilpj", list("new", withSecrets))],
  "the same as a change afterwards": [
    ...(["tenant", jobAuthor] as const),
    ({ mine }, as) => ask("PATCH", pathOf(mine, "ipj", "mine"), { spec: { pullSecrets: ["account"] } }, as),
  ],
  "a Secret of another namespace": [
    ...(["keeper", "schema"] as const),
    post("ipj", job("new", { ...byPods, pullSecrets: ["../theirs/secrets/account"] })),
  ],
  "a job in another namespace": [
    ...(["owner", "rights"] as const),
    ({ theirs }, as) => ask("POST", pathOf(theirs, "ipj"), job("new", byPods), as),
  ],
  "what others' jobs pull": [
    ...(["owner", "rights"] as const),
    ({ theirs }, as) => ask("PATCH", pathOf(theirs, "ipj", "mine"), { spec: { image: "evil.example.com/app:1" } }, as),
  ],
  "the status of its job": [
    ...(["keeper", "rights"] as const),
    ({ mine }, as) => ask("PATCH", `${pathOf(mine, "ipj", "mine")}/status`, { status: { succeeded: 1 } }, as),
  ],
  "a NodeImage": ["owner", "rights", (_, as) => ask("POST", nodeImages, emptyNodeImage("new"), as)],
  "reading NodeImages": ["owner", "rights", (_, as) => ask("GET", nodeImages, undefined, as)],
  "a key of its own for a node": [
    ...(["owner", "rights"] as const),
    (_, as) => ask("PATCH", `${nodeImagePath("node")}/status`, { status: { publicKey: "TWluZQ" } }, as),
  ],
}

/** An account of the namespace with the rights of a role in it. */
async function accountIn({ api, access }: Place, namespace: string, name: string, role: Json): Promise<Access> {
  const accounts = `/api/v1/namespaces/${namespace}/serviceaccounts`
  await api.create(accounts, { metadata: { name } })
  await api.create(`${rbac}/namespaces/${namespace}/rolebindings`, {
    metadata: { name },
    roleRef: { apiGroup: "rbac.authorization.k8s.io", ...role },
    subjects: [{ kind: "ServiceAccount", namespace, name }],
  })
  const { status } = await api.create(`${accounts}/${name}/token`, { spec: { expirationSeconds: 3600 } })
  return { ...access, token: status.token }
}

const rbac = "/apis/rbac.authorization.k8s.io/v1"
const verbs = ["get", "list", "watch", "create", "update", "patch", "delete"]
const manage = { apiGroups: [group], resources: Object.values(plurals).map(kind => namesOf(kind).plural), verbs }
const keep = { apiGroups: [""], resources: ["pods", "secrets"], verbs }

/** The same in two namespaces, a request, a job, a list and a Secret, and three accounts of the first. */
export async function authorsWorld({ api, access }: Place, mine: string, theirs: string): Promise<AuthorsWorld> {
  const withRules = async (name: string, rules: Json[]) => {
    await api.create(`${rbac}/namespaces/${mine}/roles`, { metadata: { name }, rules })
    return accountIn({ api, access }, mine, name, { kind: "Role", name })
  }
  const accounts = {
    tenant: await withRules("tenant", [manage]),
    keeper: await withRules("keeper", [manage, keep]),
    owner: await accountIn({ api, access }, mine, "owner", { kind: "ClusterRole", name: "cluster-admin" }),
  }
  for (const namespace of [mine, theirs]) {
    await api.create(`/api/v1/namespaces/${namespace}/secrets`, { metadata: { name: "account" } })
    await api.create(pathOf(namespace, "crr"), request("mine"))
    await api.create(pathOf(namespace, "ipj"), job("mine", byPods))
    await api.create(pathOf(namespace, "ilpj"), list("mine", byPods))
  }
  return { api, access, mine, theirs, accounts }
}

/** Every attempt is refused by what must refuse it, nothing has changed, and what an author may do is accepted. */
export async function tryAsAuthors(world: AuthorsWorld): Promise<void> {
  const { api, mine, theirs, accounts } = world
  const create = (short: Short, object: Json, as: keyof typeof accounts, query = "") =>
    ask("POST", pathOf(mine, short) + query, object, { access: accounts[as] })
  const dry = (...[short, object, as]: Parameters<typeof create>) => create(short, object, as, "?dryRun=All")
  await until("roles and policies to be in force", async () => {
    const allowed = [dry("crr", request("new"), "keeper"), dry("ipj", job("new", byPods), "keeper")]
    const refused = [dry("crr", request("new"), "tenant"), dry("ipj", job("new", {}), "keeper")]
    const owns = [dry("crr", request("new"), "owner")]
    const [yes, no] = [await Promise.all([...allowed, ...owns]), await Promise.all(refused)]
    return yes.every(({ status }) => status === 201) && no.every(({ status }) => status === 403)
  })
  const watched = [mine, theirs].flatMap(namespace => [
    ...(["crr", "ipj", "ilpj"] as const).map(short => pathOf(namespace, short)),
    `/api/v1/namespaces/${namespace}/secrets`,
  ])
  // A kind that was installed a moment ago may not be ready to be listed.
  const seen = () => versionsOf(api, watched, { except: "status" })
  const before = await until("everything is listed", seen)
  const answers: Json = {}
  for (const [name, [account, , attempt]] of Object.entries(authorAttempts))
    answers[name] = refusalOf(await attempt(world, { access: accounts[account] }))
  expect(answers).toEqual(Object.fromEntries(Object.entries(authorAttempts).map(([name, of]) => [name, of[1]])))
  expect(await seen()).toEqual(before)

  // A status that comes with the object is not kept.
  const told = { ...request("own"), status: { phase: "Recreating", nodeName: "another" } }
  const made = await create("crr", told, "keeper")
  expect([made.status, made.body.status]).toEqual([201, undefined])
  const pulled = job("own", { ...byPods, pullSecrets: ["account"] })
  expect((await create("ipj", pulled, "keeper")).status).toBe(201)
  const paused = { spec: { parallelism: 0 } }
  expect((await ask("PATCH", pathOf(mine, "ipj", "mine"), paused, { access: accounts.tenant })).status).toBe(200)
}
