import { describe, expect, test } from "vitest"
import { crdOf } from "#api/crd.ts"
import { Canary } from "#api/v1alpha1/canary/index.ts"
import { policyManifests } from "#cli/manifests/policies.ts"
import { testCluster } from "#cluster-sim/test-cluster.ts"
import { canarySnapshots } from "#policies/canary-snapshots.ts"

// New pods of a revision read snapshots, and no pod of anything else does.

// biome-ignore lint/suspicious/noExplicitAny: answers of several kinds.
type Json = any

const suffix = "0123456789abcdef"
const snapshot = `settings-${suffix}`

const running = { workload: "web", hash: "5d9c7", snapshots: { settings: suffix } }

/** Everywhere where a pod can name a ConfigMap. */
const everywhere = (name: string): Json => ({
  volumes: [
    { name: "plain", configMap: { name } },
    { name: "other", configMap: { name: "other" } },
    { name: "both", projected: { sources: [{ configMap: { name: "other" } }, { configMap: { name } }] } },
    { name: "secret", secret: { secretName: name } },
    { name: "empty", emptyDir: {} },
  ],
  initContainers: [
    { name: "first", image: "web:1", env: [{ name: "A", valueFrom: { configMapKeyRef: { name, key: "a" } } }] },
  ],
  containers: [
    {
      name: "web",
      image: "web:1",
      env: [
        { name: "B", value: "plain" },
        { name: "C", valueFrom: { configMapKeyRef: { name, key: "a", optional: true } } },
        { name: "D", valueFrom: { secretKeyRef: { name, key: "a", optional: true } } },
      ],
      envFrom: [{ secretRef: { name, optional: true } }, { configMapRef: { name } }],
    },
    { name: "side", image: "side:1" },
  ],
})

const namesIn = (spec: Json) => ({
  plain: spec.volumes[0].configMap.name,
  other: spec.volumes[1].configMap.name,
  projected: spec.volumes[2].projected.sources.map(({ configMap }: Json) => configMap.name),
  secret: spec.volumes[3].secret.secretName,
  init: spec.initContainers[0].env[0].valueFrom.configMapKeyRef.name,
  env: spec.containers[0].env[1].valueFrom.configMapKeyRef.name,
  secretEnv: spec.containers[0].env[2].valueFrom.secretKeyRef.name,
  envFrom: [spec.containers[0].envFrom[0].secretRef.name, spec.containers[0].envFrom[1].configMapRef.name],
})

type Place = {
  configs?: Json[]
  kind?: string
  namespace?: string
  owner?: Json
  labels?: Json
}

const owner = (fields: Json = {}) => ({
  apiVersion: "apps/v1",
  kind: "ReplicaSet",
  name: "web-5d9c7",
  uid: "u1",
  controller: true,
  ...fields,
})

/** The name that a new pod reads in place of `settings`, by all the ways there are. */
async function readBy({
  configs = [running],
  kind = "Deployment",
  namespace = "shop",
  owner: by = owner(),
  labels = { "pod-template-hash": "5d9c7" },
}: Place): Promise<Json> {
  const { cluster, send } = testCluster()
  const { storage } = cluster
  for (const manifest of [crdOf(Canary), ...policyManifests(canarySnapshots)] as Json[])
    storage.create(storage.kind(manifest.apiVersion, manifest.kind)!, manifest)
  for (const name of ["shop", "other"])
    storage.create(storage.kind("v1", "Namespace")!, {
      apiVersion: "v1",
      kind: "Namespace",
      metadata: { name },
    } as Json)
  const ask = async (method: "POST" | "PATCH", path: string, body: Json) => {
    const answer = await send(method, path, body)
    expect(answer.status, answer.body.message).toBeLessThan(300)
    return answer.body
  }
  const canaries = `/apis/${Canary.apiVersion}/namespaces/shop/${Canary.plural}`
  await ask("POST", canaries, {
    apiVersion: Canary.apiVersion,
    kind: Canary.kind,
    metadata: { name: "web", namespace: "shop" },
    spec: {
      targetRef: { apiVersion: "apps/v1", kind, name: "web" },
      service: { port: 80 },
      analysis: { interval: "1m", threshold: 5, stepWeight: 10 },
    },
  })
  await ask("PATCH", `${canaries}/web/status`, { status: { phase: "Initialized", configs } })
  const { spec } = await ask("POST", `/api/v1/namespaces/${namespace}/pods`, {
    apiVersion: "v1",
    kind: "Pod",
    metadata: { name: "web-1", namespace, labels, ...(by && { ownerReferences: [by] }) },
    spec: everywhere("settings"),
  })
  return namesIn(spec)
}

const read = (name: string) => ({
  plain: name,
  other: "other",
  projected: ["other", name],
  secret: "settings",
  init: name,
  env: name,
  secretEnv: "settings",
  envFrom: ["settings", name],
})

test("a new pod of the running revision reads the snapshot, wherever it names the ConfigMap", async () => {
  expect(await readBy({})).toEqual(read(snapshot))
})

describe("which pods read it", () => {
  const trial = { workload: "web-0a1b2c3d4e", snapshots: { settings: suffix } }
  const ofTrial = owner({ name: "web-0a1b2c3d4e-77f" })
  const set = { workload: "web", hash: "web-77f", snapshots: { settings: suffix } }
  const ofSet = { kind: "StatefulSet", owner: owner({ kind: "StatefulSet", name: "web" }), configs: [set] }
  const yes: Record<string, Place> = {
    "the first pods of a run, whose hash is not known yet": { configs: [{ ...running, snapshots: {} }, trial], owner: ofTrial, labels: { "pod-template-hash": "77f" } },
    "pods that were handed over": { configs: [{ ...trial, hash: "77f" }], owner: ofTrial, labels: { "pod-template-hash": "77f" } },
    "of a StatefulSet": { ...ofSet, labels: { "controller-revision-hash": "web-77f" } },
  } // biome-ignore format: a table
  for (const [name, place] of Object.entries(yes))
    test(`yes: ${name}`, async () => expect(await readBy(place)).toEqual(read(snapshot)))

  const others: Record<string, Place> = {
    "another revision of the same Deployment": { owner: owner({ name: "web-77f" }), labels: { "pod-template-hash": "77f" } },
    "another Deployment with the same template, and so the same hash": { owner: owner({ name: "api-5d9c7" }) },
    "a Deployment whose name begins alike": { owner: owner({ name: "web-2-5d9c7" }) },
    "a pod of its own with the label": { owner: null },
    "a pod whose owner does not control it": { owner: owner({ controller: false }) },
    "an owner of another group that is called alike": { owner: owner({ apiVersion: "evil.example.com/v1" }) },
    "an owner of another kind": { owner: owner({ kind: "Job" }) },
    "a pod without the label of a revision": { labels: {} },
    "a pod of another namespace": { namespace: "other" },
    "a status that names another workload": { configs: [{ ...running, workload: "api" }], owner: owner({ name: "api-5d9c7" }) },
    "another revision of a StatefulSet": { ...ofSet, labels: { "controller-revision-hash": "web-5d9c7" } },
    "a StatefulSet whose new revision is not known yet": { ...ofSet, configs: [{ workload: "web", snapshots: { settings: suffix } }], labels: { "controller-revision-hash": "web-77f" } },
    "a ReplicaSet of the name, where the target is a StatefulSet": { ...ofSet, owner: owner({ name: "web" }), labels: { "controller-revision-hash": "web-77f" } },
    "nothing where there is no snapshot": { configs: [{ ...running, snapshots: {} }] },
    "nothing where another ConfigMap has one": { configs: [{ ...running, snapshots: { "settings-2": suffix } }] },
  } // biome-ignore format: a table
  test("a pod of any other workload reads what it names", async () => {
    for (const [name, place] of Object.entries(others)) expect(await readBy(place), name).toEqual(read("settings"))
  })
})

test("a status cannot name anything but a snapshot of the same ConfigMap", async () => {
  for (const value of ["theirs", "../x", "0123456789ABCDEF", ""])
    await expect(readBy({ configs: [{ ...running, snapshots: { settings: value } }] })).rejects.toThrow()
})
