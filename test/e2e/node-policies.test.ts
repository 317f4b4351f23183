import { afterAll, beforeAll, expect, onTestFinished, test } from "vitest"
import { agentPermissions } from "#agent/index.ts"
import { group } from "#api/v1alpha1/group.ts"
import { agentManifests } from "#cli/manifests/agent.ts"
import { policyManifests } from "#cli/manifests/policies.ts"
import { agentNode } from "#policies/agent-node.ts"
import { containerRecreateRequestAuthor } from "#policies/containerrecreaterequest-author.ts"
import { imagePullJobAuthor } from "#policies/imagepulljob-author.ts"
import { nodeImageAgent } from "#policies/nodeimage-agent.ts"
import { ask } from "#test/support/ask.ts"
import {
  type AgentsWorld,
  agentAttempts,
  authorsWorld,
  nodeImagePath,
  ownWrites,
  pathOf,
  prepareAgentsWorld,
  refusalOf,
  tryAsAuthors,
  versionsOf,
} from "#test/support/attempts.ts"
import { installKinds } from "#test/support/fleet.ts"
import { type Access, floor, type Json, onKwok, uniqueNamespace, until } from "#test/support/floor.ts"
import { applyManifests, uninstall } from "#test/support/installation.ts"

// What an agent, or the author of a request or a pull job, tries beyond its rights is refused by the real server, by
// roles and policies as they are printed, and nothing has changed afterwards.

beforeAll(async () => {
  await installKinds()
  const policies = [agentNode, containerRecreateRequestAuthor, imagePullJobAuthor, nodeImageAgent]
  const agents = agentManifests({ image: "none", criSocket: "/none", permissions: agentPermissions })
  const manifests = [...policies.flatMap(policyManifests), ...agents.filter(({ kind }) => kind !== "DaemonSet")]
  await applyManifests(JSON.stringify({ apiVersion: "v1", kind: "List", items: manifests }))
})
afterAll(async () => {
  await uninstall()
  await floor().kubectlRun("delete", "nodeimages", "--all")
})

const agentsPath = "/api/v1/namespaces/aim-agents"
const rbac = "/apis/rbac.authorization.k8s.io/v1"

/** A token of the agents' account, bound to a pod on a node if one is given. */
async function agentToken(pod?: Json): Promise<Access> {
  const { api, access } = floor()
  const { name, uid } = pod?.metadata ?? {}
  const boundObjectRef = pod && { kind: "Pod", apiVersion: "v1", name, uid }
  const path = `${agentsPath}/serviceaccounts/aim-agent/token`
  const { status } = await api.create(path, { spec: { expirationSeconds: 3600, ...(pod && { boundObjectRef }) } })
  return { ...access, token: status.token }
}

const podOn = (node: string): Promise<Json> =>
  floor().api.create(`${agentsPath}/pods`, {
    metadata: { generateName: "agent-" },
    spec: {
      ...onKwok,
      nodeName: node,
      serviceAccountName: "aim-agent",
      containers: [{ name: "agent", image: "none" }],
    },
  })

async function agentsWorld(): Promise<AgentsWorld> {
  const { api, access } = floor()
  const namespace = await uniqueNamespace()
  await api.create(`/api/v1/namespaces/${namespace}/secrets`, { metadata: { name: "account" } })
  const { items } = await api.get("/api/v1/nodes?labelSelector=type%3Dkwok")
  const [a, b] = items.map(({ metadata }: Json) => metadata.name)
  const world = { api, access, namespace, a, b }
  await prepareAgentsWorld(world)
  return world
}

/** Lets the agents' account do everything with both kinds, and what the author of a request must: only the policies on agents are left. */
async function giveEveryRight(): Promise<void> {
  const { api } = floor()
  const metadata = { name: "agents-any-right" }
  const kinds = ["containerrecreaterequests", "nodeimages"]
  const resources = [...kinds, ...kinds.map(kind => `${kind}/status`)]
  const rules = [
    { apiGroups: [group], resources, verbs: ["*"] },
    { apiGroups: [""], resources: ["pods"], verbs: ["patch"] },
  ]
  await api.create(`${rbac}/clusterroles`, { metadata, rules })
  await api.create(`${rbac}/clusterrolebindings`, {
    metadata,
    roleRef: { apiGroup: "rbac.authorization.k8s.io", kind: "ClusterRole", name: metadata.name },
    subjects: [{ kind: "ServiceAccount", namespace: "aim-agents", name: "aim-agent" }],
  })
  onTestFinished(async () => {
    for (const kind of ["clusterrolebindings", "clusterroles"]) await api.remove(`${rbac}/${kind}/${metadata.name}`)
  })
}

test("an agent writes the status of its own node's objects and nothing else, also where its role is too wide", async () => {
  const world = await agentsWorld()
  const { api, namespace, a, b } = world
  const as = { access: await agentToken(await podOn(a)) }
  await until("role and policies to be in force", async () => {
    const refusals = ["the status of another node's request", "another node's key"].map(async name => {
      const [refusal, , attempt] = agentAttempts[name]!
      return refusalOf(await attempt(world, as)) === refusal
    })
    return (await Promise.all(refusals)).every(Boolean)
  })
  const watched = [
    ...[pathOf(namespace, "crr"), pathOf(namespace, "ipj"), `/api/v1/namespaces/${namespace}/secrets`],
    ...[nodeImagePath(a), nodeImagePath(b)],
  ]
  // A kind that was installed a moment ago may not be ready to be listed.
  const before = await until("everything is listed", () => versionsOf(api, watched))
  const tried = async (column: 0 | 1) => {
    const answers: Json = {}
    for (const [name, attempt] of Object.entries(agentAttempts)) answers[name] = refusalOf(await attempt[2](world, as))
    const expected = Object.fromEntries(Object.entries(agentAttempts).map(([name, of]) => [name, of[column]]))
    expect(answers).toEqual(expected)
    expect(await versionsOf(api, watched)).toEqual(before)
  }
  await tried(0)
  await giveEveryRight()
  await until("the wide role to be in force", async () => {
    const { status } = await ask("GET", pathOf(namespace, "crr", "of-a"), undefined, as)
    return status === 200
  })
  await tried(1)
  // Bound to no node, and to a pod that is gone: not even what its node's agent may.
  const unbound = { access: await agentToken() }
  const pod = await podOn(a)
  const gone = { access: await agentToken(pod) }
  await api.remove(`${agentsPath}/pods/${pod.metadata.name}`, { gracePeriodSeconds: 0 })
  await until("the token of the deleted pod to be refused", async () => {
    const { status } = await ask("GET", pathOf(namespace, "crr"), undefined, gone)
    return status === 401
  })
  for (const [name, write] of Object.entries(ownWrites)) {
    expect(refusalOf(await write(world, unbound)), name).toMatch(/^aim-(agent-node|nodeimage-agent)$/)
    expect(refusalOf(await write(world, gone)), name).toBe("token")
  }
  expect(await versionsOf(api, watched)).toEqual(before)
  for (const [name, write] of Object.entries(ownWrites)) expect((await write(world, as)).status, name).toBe(200)
  expect((await api.get(nodeImagePath(a))).status.runtime).toBe("some runtime")
})

test("what the author of a request or a job may not do itself is refused, and nothing has changed", async () => {
  const world = await authorsWorld(floor(), await uniqueNamespace(), await uniqueNamespace())
  await tryAsAuthors(world)
})
