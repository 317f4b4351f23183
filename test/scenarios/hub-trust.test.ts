import { describe, expect, test } from "vitest"
import { crdOf } from "#api/crd.ts"
import { kinds } from "#api/kinds.ts"
import { clusterGrant, hubManifests } from "#cli/manifests/hub.ts"
import type { Manifest } from "#cli/manifests/names.ts"
import { policies } from "#cli/manifests/policies.ts"
import { spokeManifests } from "#cli/manifests/spoke.ts"
import type { Json, User } from "#cluster-sim/index.ts"
import { hubDefinitions } from "#cluster-sim/ocm/definitions.ts"
import { testCluster } from "#cluster-sim/test-cluster.ts"
import { workObject, workSpec } from "#hub/ocm/work.ts"
import { laxDefinition } from "#test/support/transport/spoke.ts"
import { deliveryOf } from "#test/support/transport/suite.ts"

const own = "autoimagemanager.io/v1alpha1"
const account = (namespace: string, name: string): User => ({
  name: `system:serviceaccount:${namespace}:${name}`,
  groups: ["system:serviceaccounts", `system:serviceaccounts:${namespace}`, "system:authenticated"],
})

type Method = "GET" | "POST" | "PUT" | "PATCH" | "DELETE"
/** Apply is a PATCH with the content type of server-side apply. */
type Attempt = { as: string; does: [Method, string, Json?]; gets: string; type?: string }

/** What refused it: a policy's name, the rights, or nothing. */
function outcome({ status, body }: { status: number; body: Json }): string {
  const message = String((body as { message?: unknown }).message ?? "")
  const policy = /ValidatingAdmissionPolicy '([^']*)'/.exec(message)?.[1]
  if (policy) return policy
  if (status === 403) return "rights"
  return status < 300 ? "ok" : `${status} ${message}`
}

async function install(send: ReturnType<typeof testCluster>["send"], objects: readonly Json[]) {
  for (const object of objects) {
    const { apiVersion, kind, metadata } = object as unknown as Manifest & {
      metadata: { namespace?: string; name: string }
    }
    const [group, version] = apiVersion.includes("/") ? apiVersion.split("/") : ["", apiVersion]
    const plural = kind.endsWith("y") ? `${kind.slice(0, -1)}ies` : `${kind}s`
    const base = group ? `/apis/${group}/${version}` : `/api/${version}`
    const place = metadata.namespace ? `/namespaces/${metadata.namespace}` : ""
    const { status, body } = await send("POST", `${base}${place}/${plural.toLowerCase()}`, object)
    if (status !== 201) throw new Error(`${kind} ${metadata.name}: ${JSON.stringify(body)}`)
  }
}

const role = (name: string, rules: object[], namespace?: string): Json[] =>
  [
    {
      ...{ apiVersion: "rbac.authorization.k8s.io/v1", kind: namespace ? "Role" : "ClusterRole" },
      ...{ metadata: { name, ...(namespace && { namespace }) }, rules },
    },
    {
      ...{ apiVersion: "rbac.authorization.k8s.io/v1", kind: namespace ? "RoleBinding" : "ClusterRoleBinding" },
      metadata: { name, ...(namespace && { namespace }) },
      roleRef: { apiGroup: "rbac.authorization.k8s.io", kind: namespace ? "Role" : "ClusterRole", name },
      subjects: [{ kind: "User", apiGroup: "rbac.authorization.k8s.io", name }],
    },
  ] as Json[]

const everything = { apiGroups: ["autoimagemanager.io"], resources: ["*"], verbs: ["get", "create", "update", "patch"] }
const namespace = (name: string) => ({ apiVersion: "v1", kind: "Namespace", metadata: { name } }) as Json

async function openSpokeServer() {
  const users = {
    hub: account("aim-hub", "aim-hub"),
    tenant: { name: "tenant", groups: ["system:authenticated"] },
    owner: { name: "owner", groups: ["system:authenticated"] },
  }
  const opened = testCluster({ users, hasDefaultRoles: true })
  await install(opened.send, [
    ...kinds.map(kind => crdOf(kind) as Json),
    ...(policies() as Json[]).filter(each => (each as { kind: string }).kind.startsWith("Validating")),
    ...["shop", "aim-pre-cache"].map(namespace),
    ...(spokeManifests({ ocm: false }) as Json[]),
    // Every verb on our kinds in one namespace, which is usual, makes no hub of a tenant.
    ...role("tenant", [{ ...everything, verbs: ["*"] }], "shop"),
    ...role(
      "owner",
      [everything, { apiGroups: ["rbac.authorization.k8s.io"], resources: ["*"], verbs: ["create"] }],
      "shop",
    ),
  ])
  return opened
}

const manifest = (kind: string, spec: object, place?: string) =>
  ({ apiVersion: own, kind, metadata: { name: "web", ...(place && { namespace: place }) }, spec }) as Json
const image = "registry.example.com/web:v2"
const serviceImage = manifest("ServiceImage", {
  target: { apiVersion: "services.example.com/v1", kind: "Dicom" },
  defaultImage: image,
})
const source = manifest(
  "AlternateImageSource",
  {
    imageSourceReplacements: [{ equivalentRepositories: ["a.example.com/web", "b.example.com/web"] }],
  },
  "shop",
)
const list = (more: object = {}) => manifest("ImageListPullJob", { images: [image], ...more }, "shop")
const request = manifest("ContainerRecreateRequest", { podName: "web", containers: [{ name: "app" }] }, "shop")
const config = (place: string, name: string) =>
  ({ apiVersion: "v1", kind: "ConfigMap", metadata: { name, namespace: place }, data: { a: "1" } }) as Json
const lease = (place: string, name: string) =>
  ({ apiVersion: "coordination.k8s.io/v1", kind: "Lease", metadata: { name, namespace: place }, spec: {} }) as Json
const leases = (place: string, name: string) => `/apis/coordination.k8s.io/v1/namespaces/${place}/leases/${name}`
const ours = (plural: string, place = "shop") => `/apis/${own}${place && `/namespaces/${place}`}/${plural}`
const apply = "application/apply-patch+yaml"

const onSpoke: Record<string, Attempt> = {
  "the hub delivers a ServiceImage": { as: "hub", does: ["POST", ours("serviceimages", ""), serviceImage], gets: "ok" },
  "the hub delivers an AlternateImageSource": {
    as: "hub",
    does: ["POST", ours("alternateimagesources"), source],
    gets: "ok",
  },
  "the hub delivers a restart": { as: "hub", does: ["POST", ours("containerrecreaterequests"), request], gets: "ok" },
  "the hub delivers a pull job for nodes": { as: "hub", does: ["POST", ours("imagelistpulljobs"), list()], gets: "ok" },
  "a stolen hub credential sends Secrets to nodes": {
    ...{ as: "hub", does: ["POST", ours("imagelistpulljobs"), list({ pullSecrets: ["registry"] })] },
    gets: "aim-imagepulljob-author",
  },
  "a stolen hub credential reads a Secret": {
    as: "hub",
    does: ["GET", "/api/v1/namespaces/shop/secrets/a"],
    gets: "rights",
  },
  "a stolen hub credential lists Secrets": { as: "hub", does: ["GET", "/api/v1/secrets"], gets: "rights" },
  "a stolen hub credential lists pods": { as: "hub", does: ["GET", "/api/v1/pods"], gets: "rights" },
  "a stolen hub credential makes a pod": {
    ...{
      as: "hub",
      does: ["POST", "/api/v1/namespaces/shop/pods", { metadata: { name: "a" }, spec: {} } as Json],
      gets: "rights",
    },
  },
  "a stolen hub credential patches a Deployment": {
    ...{ as: "hub", does: ["PATCH", "/apis/apps/v1/namespaces/shop/deployments/web", { spec: {} }], gets: "rights" },
  },
  "a stolen hub credential reads nodes": { as: "hub", does: ["GET", "/api/v1/nodes"], gets: "rights" },
  "a stolen hub credential writes a NodeImage": {
    ...{ as: "hub", does: ["POST", ours("nodeimages", ""), manifest("NodeImage", { images: {} })], gets: "rights" },
  },
  "a stolen hub credential makes a namespace of another name": {
    ...{ as: "hub", does: ["PATCH", "/api/v1/namespaces/evil", namespace("evil")], gets: "rights", type: apply },
  },
  "a stolen hub credential deletes a namespace": {
    as: "hub",
    does: ["DELETE", "/api/v1/namespaces/shop"],
    gets: "rights",
  },
  "the hub applies the list of images": {
    ...{ as: "hub", gets: "ok", type: apply },
    does: [
      "PATCH",
      "/api/v1/namespaces/aim-pre-cache/configmaps/pre-cache-spec",
      config("aim-pre-cache", "pre-cache-spec"),
    ],
  },
  "a stolen hub credential writes another ConfigMap": {
    ...{ as: "hub", gets: "rights", type: apply },
    does: ["PATCH", "/api/v1/namespaces/kube-system/configmaps/kubeadm", config("kube-system", "kubeadm")],
  },
  "the hub takes the Lease of a run": {
    ...{
      as: "hub",
      does: ["PATCH", leases("aim-hub", "aim-run"), lease("aim-hub", "aim-run")],
      gets: "ok",
      type: apply,
    },
  },
  "a stolen hub credential takes the Lease of a controller": {
    ...{
      as: "hub",
      does: ["PATCH", leases("kube-system", "aim"), lease("kube-system", "aim")],
      gets: "rights",
      type: apply,
    },
  },
  "a stolen hub credential binds itself to a role": {
    as: "hub",
    does: ["POST", "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings", role("hub", [])[1] as Json],
    gets: "rights",
  },
  "a stolen hub credential asks for a token of another account": {
    ...{
      as: "hub",
      does: ["POST", "/api/v1/namespaces/aim-hub/serviceaccounts/aim-hub/token", { spec: {} } as Json],
      gets: "rights",
    },
  },
  "a stolen hub credential removes a policy": {
    as: "hub",
    does: ["DELETE", "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies/aim-imagepulljob-author"],
    gets: "rights",
  },
  "a tenant without rights on workloads writes a source": {
    ...{ as: "tenant", does: ["POST", ours("alternateimagesources"), source], gets: "aim-alternateimagesource-author" },
  },
  "a tenant without rights on pods restarts one": {
    ...{
      as: "tenant",
      does: ["POST", ours("containerrecreaterequests"), request],
      gets: "aim-containerrecreaterequest-author",
    },
  },
  "a tenant pulls to every node": {
    ...{ as: "tenant", does: ["POST", ours("imagelistpulljobs"), list()], gets: "aim-imagepulljob-author" },
  },
  "a tenant takes over what the hub delivers": {
    ...{ as: "tenant", does: ["PATCH", ours("serviceimages/web", ""), { spec: { paused: true } }], gets: "rights" },
  },
  "the owner of a namespace grants itself the verb deliver": {
    as: "owner",
    does: [
      "POST",
      "/apis/rbac.authorization.k8s.io/v1/namespaces/shop/roles",
      role(
        "x",
        [{ apiGroups: ["autoimagemanager.io"], resources: ["alternateimagesources"], verbs: ["deliver"] }],
        "shop",
      )[0] as Json,
    ],
    gets: "rights",
  },
}

const run = {
  apiVersion: own,
  kind: "ClusterGroupUpgrade",
  metadata: { name: "web", namespace: "shop" },
  spec: {},
} as Json
const good = deliveryOf([
  {
    manifest: { apiVersion: own, kind: "ServiceImage", metadata: { name: "web" }, spec: {} },
    ...{ lifetime: "Kept", judge: { by: "Ready", expects: [] } },
  },
])
type Spec = ReturnType<typeof workSpec>
const workWith = (change: (spec: Spec) => unknown, name = "aim-run-one", place = "north") => {
  const spec = structuredClone(workSpec(good, "one"))
  change(spec)
  const object = workObject(place, good, spec)
  return { ...object, metadata: { ...object.metadata, name } } as unknown as Json
}
const works = (place = "north") => `/apis/work.open-cluster-management.io/v1/namespaces/${place}/manifestworks`
const holds = (extra: object) =>
  workWith(spec => {
    spec.workload.manifests.push(extra as never)
  })
const policy = "aim-hub-manifestworks"

const onHub: Record<string, Attempt> = {
  "an author without the verb writes a run": {
    ...{ as: "tenant", does: ["POST", ours("clustergroupupgrades"), run], gets: "aim-clustergroupupgrade-author" },
  },
  "an author with the verb writes a run": {
    as: "author",
    does: ["POST", ours("clustergroupupgrades"), run],
    gets: "ok",
  },
  "the controller writes a work": { as: "controller", does: ["POST", works(), workWith(() => {})], gets: "ok" },
  "a stolen controller token writes a work for a cluster that was not granted": {
    ...{ as: "controller", does: ["POST", works("south"), workWith(() => {}, "aim-run-one", "south")], gets: "rights" },
  },
  "a stolen controller token sends a role": {
    as: "controller",
    does: [
      "POST",
      works(),
      holds({ apiVersion: "rbac.authorization.k8s.io/v1", kind: "ClusterRole", metadata: { name: "x" } }),
    ],
    gets: policy,
  },
  "a stolen controller token sends a pod": {
    ...{
      as: "controller",
      does: ["POST", works(), holds({ apiVersion: "v1", kind: "Pod", metadata: { name: "x" } })],
      gets: policy,
    },
  },
  "a stolen controller token sends a kind of our name in another group": {
    as: "controller",
    does: [
      "POST",
      works(),
      holds({ apiVersion: "evil.example.com/v1", kind: "ServiceImage", metadata: { name: "x" } }),
    ],
    gets: policy,
  },
  "a stolen controller token sends a ConfigMap elsewhere": {
    as: "controller",
    does: [
      "POST",
      works(),
      holds({ apiVersion: "v1", kind: "ConfigMap", metadata: { name: "x", namespace: "kube-system" } }),
    ],
    gets: policy,
  },
  "a stolen controller token sends another Lease": {
    as: "controller",
    does: [
      "POST",
      works(),
      holds({
        apiVersion: "coordination.k8s.io/v1",
        kind: "Lease",
        metadata: { name: "aim", namespace: "kube-system" },
      }),
    ],
    gets: policy,
  },
  "a stolen controller token writes without executor": {
    ...{
      as: "controller",
      does: ["POST", works(), workWith(spec => Reflect.deleteProperty(spec, "executor"))],
      gets: policy,
    },
  },
  "a stolen controller token names another executor": {
    as: "controller",
    does: ["POST", works(), workWith(spec => Object.assign(spec.executor.subject.serviceAccount, { name: "admin" }))],
    gets: policy,
  },
  "a stolen controller token takes fields by force": {
    as: "controller",
    does: [
      "POST",
      works(),
      workWith(spec => Object.assign(spec.manifestConfigs[0]?.updateStrategy.serverSideApply ?? {}, { force: true })),
    ],
    gets: policy,
  },
  "a stolen controller token writes another name": {
    ...{ as: "controller", does: ["POST", works(), workWith(() => {}, "klusterlet")], gets: policy },
  },
  "a stolen controller token lists its Secrets": {
    ...{ as: "controller", does: ["GET", "/api/v1/namespaces/aim-system/secrets"], gets: "rights" },
  },
  "a stolen controller token reads a Secret of another namespace": {
    ...{ as: "controller", does: ["GET", "/api/v1/namespaces/shop/secrets/a"], gets: "rights" },
  },
  "a cluster's agent reads the works of another cluster": {
    as: "agent",
    does: ["GET", works("south")],
    gets: "rights",
  },
  "a cluster's agent makes a work": { as: "agent", does: ["POST", works(), workWith(() => {})], gets: "rights" },
  "a cluster's agent registers a cluster": {
    as: "agent",
    does: [
      "POST",
      ours("spokeclusters", ""),
      { apiVersion: own, kind: "SpokeCluster", metadata: { name: "x" } } as Json,
    ],
    gets: "rights",
  },
  "a cluster's agent writes a run": { as: "agent", does: ["POST", ours("clustergroupupgrades"), run], gets: "rights" },
}

async function openHubServer() {
  const users = {
    controller: account("aim-system", "aim-controller"),
    ...Object.fromEntries(
      ["tenant", "author", "agent"].map(name => [name, { name, groups: ["system:authenticated"] }]),
    ),
  }
  const opened = testCluster({ users, hasDefaultRoles: true })
  const agentRights = [
    {
      apiGroups: ["work.open-cluster-management.io"],
      resources: ["manifestworks"],
      verbs: ["get", "list", "watch", "update", "patch"],
    },
  ]
  await install(opened.send, [
    ...hubDefinitions,
    laxDefinition("clustergroupupgrades", "ClusterGroupUpgrade", true),
    laxDefinition("precachingconfigs", "PreCachingConfig", true),
    laxDefinition("spokeclusters", "SpokeCluster", false),
    ...["aim-system", "north", "south", "shop"].map(namespace),
    ...(hubManifests("aim-system") as Json[]),
    clusterGrant("north", "aim-system") as Json,
    ...role("tenant", [everything], "shop"),
    ...role("author", [
      everything,
      { apiGroups: ["autoimagemanager.io"], resources: ["spokeclusters"], verbs: ["upgrade"] },
    ]),
    ...role("agent", agentRights, "north"),
  ])
  return opened
}

for (const [place, open, attempts] of [
  ["on a cluster", openSpokeServer, onSpoke],
  ["on a hub", openHubServer, onHub],
] as const)
  describe(place, () => {
    test("each attempt gets its answer", async () => {
      const { cluster, clock } = await open()
      const front = cluster.front()
      const told: Record<string, string> = {}
      for (const [name, { as, does, type }] of Object.entries(attempts)) {
        const [method, path, body] = does
        const contentType = type ?? (method === "PATCH" ? "application/merge-patch+json" : "application/json")
        const response = await front.send({
          method,
          path: type === apply ? `${path}?fieldManager=test` : path,
          headers: { authorization: `Bearer ${as}`, "content-type": contentType },
          body: body === undefined ? undefined : JSON.stringify(body),
          signal: new AbortController().signal,
        })
        const chunks: Uint8Array[] = []
        for await (const chunk of response.body) chunks.push(chunk)
        told[name] = outcome({ status: response.status, body: JSON.parse(Buffer.concat(chunks).toString("utf8")) })
        await clock.advance(1)
      }
      expect(told).toEqual(Object.fromEntries(Object.entries(attempts).map(([name, { gets }]) => [name, gets])))
    })
  })
