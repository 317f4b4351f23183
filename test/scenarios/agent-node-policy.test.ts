import { describe, expect, test } from "vitest"
import { crdOf } from "#api/crd.ts"
import { ContainerRecreateRequest } from "#api/v1alpha1/containerrecreaterequest/index.ts"
import { NodeImage } from "#api/v1alpha1/nodeimage/index.ts"
import { policyManifests } from "#cli/manifests/policies.ts"
import type { Json } from "#cluster-sim/index.ts"
import { testCluster } from "#cluster-sim/test-cluster.ts"
import { agentNode } from "#policies/agent-node.ts"
import { containerRecreateRequestAuthor } from "#policies/containerrecreaterequest-author.ts"
import { nodeImageAgent } from "#policies/nodeimage-agent.ts"

// What an agent may write with the token of its pod, and nothing else. Rights of RBAC are not part of this: the agents'
// account could write every request, and the policy is what limits it to its node.

const { apiVersion, kind: name } = ContainerRecreateRequest
const state = { name: "app", phase: "Pending", containerID: "containerd://1", restartCount: 0 }

function world() {
  const { cluster } = testCluster()
  const { storage } = cluster
  const definitions = [
    crdOf(ContainerRecreateRequest),
    ...policyManifests(agentNode),
    ...policyManifests(containerRecreateRequestAuthor),
  ]
  for (const manifest of definitions as Json[])
    storage.create(storage.kind(manifest.apiVersion, manifest.kind)!, manifest)
  storage.create(storage.kind("v1", "Namespace")!, { metadata: { name: "shop" } })
  const kind = storage.kind(apiVersion, name)!
  const make = (request: string, nodeName?: string) => {
    const metadata = { name: request, namespace: "shop" }
    const spec = { podName: "web", containers: [{ name: "app" }] }
    const made = storage.create(kind, { apiVersion, kind: name, metadata, spec })
    if (nodeName === undefined) return made
    const status = { phase: "Recreating", nodeName, podUID: "u", containerRecreateStates: [state] }
    return storage.update(kind, { ...made, status }, { subresource: "status" })
  }
  return { storage, kind, a: make("a", "node-a"), b: make("b", "node-b"), none: make("none") }
}

const agent = (node?: string) => ({
  name: "system:serviceaccount:aim-agents:aim-agent",
  groups: ["system:serviceaccounts"],
  ...(node !== undefined && { extra: { "authentication.kubernetes.io/node-name": [node] } }),
})
const begun = { ...state, phase: "Recreating", stopTime: "2026-01-01T00:00:00.000000Z" }

/** Writes the status of a request as an agent. */
function write(of: "a" | "b" | "none", fields: Json, user = agent("node-a")) {
  const { storage, kind, ...objects } = world()
  const status = { ...objects[of].status, ...fields }
  return {
    write: () => storage.update(kind, { ...objects[of], status }, { subresource: "status", user }),
    before: objects[of],
    now: () => storage.get(kind, { name: of, namespace: "shop" }),
  }
}

test("an agent reports the containers of a request of its own node", () => {
  const { write: send, now } = write("a", { containerRecreateStates: [begun] })
  send()
  expect(now().status.containerRecreateStates[0]).toMatchObject({ phase: "Recreating" })
})

describe("is refused, and nothing changes", () => {
  const states = { containerRecreateStates: [begun] }
  const attempts: Record<string, [ReturnType<typeof write>, string]> = {
    "another node's request": [write("b", states), "its own node only"],
    "a request of no node yet": [write("none", states), "its own node only"],
    "taking over another node's request": [write("b", { nodeName: "node-a" }), "its own node only"],
    "taking over a request of no node": [write("none", { nodeName: "node-a" }), "its own node only"],
    "giving a request to another node": [write("a", { nodeName: "node-b" }), "its own node only"],
    "giving a request to no node": [write("a", { nodeName: "" }), "its own node only"],
    "the same by the other node's agent": [write("a", states, agent("node-b")), "its own node only"],
    "a token that is bound to no node": [write("a", states, agent()), "must be bound to a pod on a node"],
    "a token with an empty node": [write("none", states, agent("")), "must be bound to a pod on a node"],
    "the end of a request": [write("a", { phase: "Completed" }), "the controller's"],
    "another pod": [write("a", { podUID: "other" }), "the controller's"],
  }
  for (const [what, [{ write: send, before, now }, says]] of Object.entries(attempts))
    test(what, () => {
      expect(send).toThrow(says)
      expect(now()).toEqual(before)
    })

  test("a new request, a changed one, and deleting one", () => {
    const { storage, kind, a } = world()
    const user = agent("node-a")
    const metadata = { name: "own", namespace: "shop" }
    expect(() => storage.create(kind, { apiVersion, kind: name, metadata, spec: a.spec }, { user })).toThrow(
      "status only",
    )
    const labelled = { ...a, metadata: { ...a.metadata, labels: { mine: "yes" } } }
    expect(() => storage.update(kind, labelled, { user })).toThrow("status only")
    expect(() => storage.delete(kind, { name: "a", namespace: "shop" }, { user })).toThrow("status only")
    expect(storage.get(kind, { name: "a", namespace: "shop" })).toEqual(a)
  })
})

test("an agent writes the status of its own node's NodeImage, and no other part of it", () => {
  const { cluster } = testCluster()
  const { storage } = cluster
  for (const manifest of [crdOf(NodeImage), ...policyManifests(nodeImageAgent)] as Json[])
    storage.create(storage.kind(manifest.apiVersion, manifest.kind)!, manifest)
  const kind = storage.kind(NodeImage.apiVersion, NodeImage.kind)!
  const { apiVersion, kind: kindName } = NodeImage
  const make = (node: string) =>
    storage.create(kind, { apiVersion, kind: kindName, metadata: { name: node }, spec: { images: {} } })
  const [a, b] = [make("node-a"), make("node-b")]
  const write = (object: Json, user = agent("node-a")) => {
    const told = { ...object, status: { publicKey: "TWluZQ" } }
    return storage.update(kind, told, { subresource: "status", user })
  }
  expect(() => write(b)).toThrow('the agent of node "node-a" writes the NodeImage of its own node only')
  expect(() => write(a, agent())).toThrow('the agent of node "" writes')
  const labelled = { ...a, metadata: { ...a.metadata, labels: { mine: "yes" } } }
  expect(() => storage.update(kind, labelled, { user: agent("node-a") })).toThrow("an agent writes status only")
  expect(() => storage.delete(kind, { name: "node-a" }, { user: agent("node-a") })).toThrow("status only")
  expect([a, b].map(({ metadata }) => storage.get(kind, { name: metadata.name }))).toEqual([a, b])
  expect(write(a).status).toMatchObject({ publicKey: "TWluZQ" })
})

test("the author of a request must be allowed to patch pods", () => {
  const { storage, kind, a } = world()
  const object = { apiVersion, kind: name, metadata: { name: "own", namespace: "shop" }, spec: a.spec }
  const ann = { name: "ann", groups: ["system:authenticated"] }
  expect(() => storage.create(kind, object, { user: ann })).toThrow("you may not patch pods in namespace shop")
})
