import { expect, test } from "vitest"
import { clusterRoleAggregation } from "./cluster-role.ts"
import { disruptionController } from "./disruption.ts"
import { namespaceController, rootCertificatePublisher, serviceAccountController } from "./namespace.ts"
import { podCollector } from "./pod-gc.ts"
import { plainNodes, testWorld } from "./test-world.ts"

test("every namespace has its account and certificate, also after they were deleted", async () => {
  const world = testWorld()
  world.start(serviceAccountController(world), rootCertificatePublisher(world, "PEM"))
  world.namespace("shop")
  await world.clock.advance(100)
  expect(world.get("ServiceAccount", "default", "shop")).toBeDefined()
  expect(world.get("ConfigMap", "kube-root-ca.crt", "shop")?.data).toEqual({ "ca.crt": "PEM" })
  world.remove("ServiceAccount", "default")
  world.patch("ConfigMap", "kube-root-ca.crt", { data: { "ca.crt": "other" } })
  await world.clock.advance(100)
  expect(world.get("ServiceAccount", "default")).toBeDefined()
  expect(world.get("ConfigMap", "kube-root-ca.crt")?.data).toEqual({ "ca.crt": "PEM" })
})

test("a deleted namespace is emptied, reports what holds it, and is removed, as seen on a real 1.36", async () => {
  const world = testWorld()
  world.start(namespaceController(world), plainNodes(world))
  world.namespace("shop")
  const inside = { namespace: "shop" }
  world.create({ apiVersion: "v1", kind: "ConfigMap", metadata: { ...inside, name: "a" } })
  const held = { ...inside, name: "held", finalizers: ["example.com/held"] }
  world.create({ apiVersion: "v1", kind: "ConfigMap", metadata: held })
  world.create({
    apiVersion: "v1",
    kind: "Pod",
    metadata: { ...inside, name: "p" },
    spec: { terminationGracePeriodSeconds: 2, containers: [{ name: "c", image: "c" }] },
  })
  await world.clock.advance(1000)
  world.remove("Namespace", "shop")
  await world.clock.advance(4000)
  expect(world.list("Pod")).toHaveLength(1) // five seconds of grace
  await world.clock.advance(10_000)
  const namespace = world.get("Namespace", "shop")!
  expect(namespace.status.phase).toBe("Terminating")
  expect(
    namespace.status.conditions.map(({ type, status, message }: Record<string, string>) => [type, status, message]),
  ).toEqual([
    ["NamespaceDeletionDiscoveryFailure", "False", "All resources successfully discovered"],
    ["NamespaceDeletionGroupVersionParsingFailure", "False", "All legacy kube types successfully parsed"],
    ["NamespaceDeletionContentFailure", "False", "All content successfully deleted, may be waiting on finalization"],
    ["NamespaceContentRemaining", "True", "Some resources are remaining: configmaps. has 1 resource instances"],
    [
      "NamespaceFinalizersRemaining",
      "True",
      "Some content in the namespace has finalizers remaining: example.com/held in 1 resource instances",
    ],
  ])
  world.patch("ConfigMap", "held", { metadata: { finalizers: null } }, "shop")
  await world.clock.advance(20_000)
  expect(world.get("Namespace", "shop")).toBeUndefined()
})

test("an aggregated ClusterRole has the rules of the others, each once, by name", async () => {
  const world = testWorld()
  world.start(clusterRoleAggregation(world))
  const role = (name: string, labels: object, rest: object) =>
    world.create({
      apiVersion: "rbac.authorization.k8s.io/v1",
      kind: "ClusterRole",
      metadata: { name, labels },
      ...rest,
    })
  const rule = (resource: string) => ({ apiGroups: [""], resources: [resource], verbs: ["get"] })
  role("all", {}, { aggregationRule: { clusterRoleSelectors: [{ matchLabels: { to: "all" } }] }, rules: [] })
  role("b", { to: "all" }, { rules: [rule("pods"), rule("services")] })
  role("a", { to: "all" }, { rules: [rule("secrets"), rule("pods")] })
  role("c", {}, { rules: [rule("nodes")] })
  await world.clock.advance(100)
  const resources = () =>
    world.get("ClusterRole", "all")?.rules.map((each: { resources: string[] }) => each.resources[0])
  expect(resources()).toEqual(["secrets", "pods", "services"])
  world.remove("ClusterRole", "a")
  await world.clock.advance(100)
  expect(resources()).toEqual(["pods", "services"])
})

test("a budget reports how many pods may be evicted, and an error if a controller has no scale", async () => {
  const world = testWorld()
  world.start(disruptionController(world), plainNodes(world))
  const set = world.create({
    apiVersion: "apps/v1",
    kind: "ReplicaSet",
    metadata: { name: "web" },
    spec: {
      replicas: 3,
      selector: { matchLabels: { app: "web" } },
      template: { metadata: { labels: { app: "web" } }, spec: { containers: [{ name: "c", image: "c" }] } },
    },
  })
  const pod = (name: string, owner: { kind: string; name: string; uid: string; apiVersion: string }) =>
    world.create({
      apiVersion: "v1",
      kind: "Pod",
      metadata: { name, labels: { app: "web" }, ownerReferences: [{ ...owner, controller: true }] },
      spec: { containers: [{ name: "c", image: "c" }] },
    })
  const owner = { apiVersion: "apps/v1", kind: "ReplicaSet", name: "web", uid: set.metadata.uid }
  const budget = { apiVersion: "policy/v1", kind: "PodDisruptionBudget", metadata: { name: "web" } }
  world.create({ ...budget, spec: { maxUnavailable: "50%", selector: { matchLabels: { app: "web" } } } })
  await world.clock.advance(100)
  const status = () => world.get("PodDisruptionBudget", "web")?.status
  expect(status()).toMatchObject({ disruptionsAllowed: 0, expectedPods: 0 })
  for (const name of ["a", "b", "c"]) pod(name, owner)
  await world.clock.advance(1000)
  expect(status()).toEqual({
    observedGeneration: 1,
    disruptionsAllowed: 2,
    currentHealthy: 3,
    desiredHealthy: 1,
    expectedPods: 3,
    conditions: [
      {
        type: "DisruptionAllowed",
        status: "True",
        reason: "SufficientPods",
        message: "",
        observedGeneration: 1,
        lastTransitionTime: expect.any(String),
      },
    ],
  })
  const daemon = world.create({
    apiVersion: "apps/v1",
    kind: "DaemonSet",
    metadata: { name: "web" },
    spec: {
      selector: { matchLabels: { app: "web" } },
      template: { metadata: { labels: { app: "web" } }, spec: { containers: [{ name: "c", image: "c" }] } },
    },
  })
  pod("d", { apiVersion: "apps/v1", kind: "DaemonSet", name: "web", uid: daemon.metadata.uid })
  await world.clock.advance(1000)
  expect(status()).toMatchObject({ disruptionsAllowed: 0 })
  expect(status().conditions[0]).toMatchObject({
    reason: "SyncFailed",
    message: "daemonsets.apps does not implement the scale subresource",
  })
})

test("pods of a node that is gone are removed after a while", async () => {
  const world = testWorld()
  world.start(podCollector(world))
  world.create({ apiVersion: "v1", kind: "Node", metadata: { name: "n" } })
  world.create({
    apiVersion: "v1",
    kind: "Pod",
    metadata: { name: "p" },
    spec: { nodeName: "n", containers: [{ name: "c", image: "c" }] },
  })
  world.remove("Node", "n")
  await world.clock.advance(30_000)
  expect(world.list("Pod")).toHaveLength(1)
  await world.clock.advance(30_000)
  expect(world.list("Pod")).toEqual([])
  const failed = world.history.findLast(
    ({ type, object }) => type === "MODIFIED" && object.kind === "Pod" && object.status.phase === "Failed",
  )
  expect(failed?.object.status.conditions).toMatchObject([{ type: "DisruptionTarget", reason: "DeletionByPodGC" }])
})
