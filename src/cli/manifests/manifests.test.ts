import { describe, expect, test } from "vitest"
import { parseAllDocuments } from "yaml"
import type { Json } from "#cluster-sim/index.ts"
import { virtualClock } from "#runtime/clock.ts"
import type { Permission } from "#runtime/controller.ts"
import { toDocuments } from "../render/yaml.ts"
import { storedWorld } from "../test-store.ts"
import { manifests, type Sources, type Wanted } from "./all.ts"
import type { Manifest } from "./names.ts"
import { parseForeignKind } from "./rbac.ts"
import { type Rule, rulesFor } from "./rules.ts"
import { sources } from "./sources.ts"

const wanted: Wanted = { section: "all", foreign: [], namespace: "aim-system", image: "example/aim:1" }
const dicoms = { plural: "dicoms", group: "services.example.com" }
const widgets: Permission = { resource: { group: "example.com", plural: "widgets" }, verbs: ["watch", "list"] }
const declared: Sources = {
  crds: [],
  controllers: [
    widgets,
    { ...widgets, subresource: "status", verbs: ["update"] },
    { resource: { group: "apps", plural: "deployments" }, verbs: ["get", "patch", "delete"] },
  ],
  election: [{ resource: { group: "coordination.k8s.io", plural: "leases" }, verbs: ["update", "get", "create"] }],
  agent: [widgets],
}

type PolicySpec = { policyName?: string; failurePolicy?: string; validationActions?: string[] }

const rulesOf = (objects: readonly Manifest[], name: string) =>
  objects.find(({ kind, metadata }) => kind.endsWith("Role") && metadata.name === name)?.rules as Rule[]
const names = (objects: readonly Manifest[]) => objects.map(({ kind, metadata }) => `${kind}/${metadata.name}`)

/** Groups of workloads, of what scales them, and of what divides requests: namespaces grant what may be written there. */
const ofNamespaces = [
  ...["apps", "batch", "autoscaling", "keda.sh"],
  ...["gateway.networking.k8s.io", "projectcontour.io", "split.smi-spec.io", "traefik.io", "networking.istio.io"],
]

describe("rules", () => {
  test("hold exactly what is declared: same group and verbs share a rule, twice declared is once", () => {
    const also: Permission = { resource: { group: "example.com", plural: "gadgets" }, verbs: ["list", "watch"] }
    expect(rulesFor([widgets, widgets, also, { ...widgets, verbs: [] }])).toEqual([
      { apiGroups: ["example.com"], resources: ["gadgets", "widgets"], verbs: ["list", "watch"] },
    ])
  })

  test("what a controller declares on a workload is reading for itself and writing for the grant", () => {
    const objects = manifests({ ...wanted, section: "rbac" }, declared)
    expect(rulesOf(objects, "aim-controller-base")).toEqual([
      { apiGroups: ["apps"], resources: ["deployments"], verbs: ["get"] },
      { apiGroups: ["example.com"], resources: ["widgets"], verbs: ["list", "watch"] },
      { apiGroups: ["example.com"], resources: ["widgets/status"], verbs: ["update"] },
    ])
    expect(rulesOf(objects, "aim-target-base")).toEqual([
      { apiGroups: ["apps"], resources: ["deployments"], verbs: ["patch", "delete"] },
    ])
    expect(rulesOf(objects, "aim-controller-election")).toEqual([
      { apiGroups: ["coordination.k8s.io"], resources: ["leases"], verbs: ["get", "create", "update"] },
    ])
  })

  test("of this version: no wildcard, no secret, no way to more rights, no write on workloads without a grant", () => {
    const objects = manifests({ ...wanted, foreign: [dicoms] }, sources())
    const all = objects.flatMap(({ rules }) => (rules as Rule[] | undefined) ?? [])
    expect(all.length).toBeGreaterThan(5)
    for (const { apiGroups, resources, verbs } of all) {
      for (const word of [...apiGroups, ...resources, ...verbs]) expect(word).not.toContain("*")
      for (const resource of resources) expect(resource).not.toMatch(/\/exec$|\/attach$|\/proxy$|\/ephemeral|\/token$/)
      for (const verb of verbs) expect(["get", "list", "watch", "create", "update", "patch", "delete"]).toContain(verb)
      // Of all bindings it may see those by which it was granted something, and change none.
      if (apiGroups.includes("rbac.authorization.k8s.io")) expect(verbs).toEqual(["list", "watch"])
    }
    const bound = objects
      .filter(
        ({ metadata }) => "rbac.autoimagemanager.io/aggregate-to-controller" in ((metadata.labels ?? {}) as object),
      )
      .flatMap(({ rules }) => rules as Rule[])
    for (const { apiGroups, resources, verbs } of bound) {
      for (const resource of resources) expect(resource).not.toMatch(/^secrets|^serviceaccounts|^configmaps/)
      const isWorkload = [...ofNamespaces, dicoms.group].some(group => apiGroups.includes(group))
      if (isWorkload || resources.includes("pods") || resources.includes("services"))
        for (const verb of verbs) expect(["get", "list", "watch"]).toContain(verb)
    }
    // A pull secret is read where its namespace names it (aim grant --pull-secrets), by no role that is printed here.
    for (const { resources } of all) expect(resources).not.toContain("secrets")
  })

  test("of this version are those its controllers declare, no others", () => {
    const printed = rulesOf(manifests({ ...wanted, section: "rbac" }, sources()), "aim-controller-base")
    // Changing workloads, pods, Services and routes, and reading Secrets, is what each namespace grants for itself.
    const isConfidential = ({ resource }: Permission) =>
      ["secrets", "serviceaccounts", "configmaps"].includes(resource.plural)
    const isRead = new Set<string>(["get", "list", "watch"])
    const isTarget = ({ resource }: Permission) =>
      ofNamespaces.includes(resource.group) || (resource.group === "" && ["pods", "services"].includes(resource.plural))
    const reading = sources()
      .controllers.filter(permission => !isConfidential(permission))
      .map(permission =>
        isTarget(permission) ? { ...permission, verbs: permission.verbs.filter(verb => isRead.has(verb)) } : permission,
      )
    expect(printed).toEqual(rulesFor(reading))
  })

  test("that are for some names stay apart from those for all", () => {
    const one: Permission = { ...widgets, names: ["one"] }
    expect(rulesFor([widgets, one])).toEqual([
      { apiGroups: ["example.com"], resources: ["widgets"], verbs: ["list", "watch"] },
      { apiGroups: ["example.com"], resources: ["widgets"], resourceNames: ["one"], verbs: ["list", "watch"] },
    ])
  })
})

describe("sections", () => {
  test("rbac --for prints the two roles that extend an installation, and only those", () => {
    const objects = manifests({ ...wanted, section: "rbac", foreign: [dicoms] }, declared)
    expect(names(objects)).toEqual([
      "ClusterRole/aim-controller-dicoms.services.example.com",
      "ClusterRole/aim-target-dicoms.services.example.com",
    ])
    expect(objects.map(({ rules }) => (rules as Rule[]).map(({ verbs }) => verbs))).toEqual([
      [["get", "list", "watch"]],
      [["patch"]],
    ])
    // The labels are those the two aggregated roles select.
    const selected = manifests({ ...wanted, section: "rbac" }, declared)
      .map(({ aggregationRule }) => aggregationRule as { clusterRoleSelectors: { matchLabels: object }[] } | undefined)
      .flatMap(rule => rule?.clusterRoleSelectors.map(({ matchLabels }) => matchLabels) ?? [])
    for (const [i, labels] of selected.entries()) expect(objects[i]!.metadata.labels).toMatchObject(labels)
  })

  test("all comes in an order that can be applied, with the foreign kinds", () => {
    expect(names(manifests({ ...wanted, foreign: [dicoms] }, sources()))).toEqual([
      "Namespace/aim-system",
      "CustomResourceDefinition/serviceimages.autoimagemanager.io",
      "CustomResourceDefinition/alternateimagesources.autoimagemanager.io",
      "CustomResourceDefinition/containerrecreaterequests.autoimagemanager.io",
      "CustomResourceDefinition/nodeimages.autoimagemanager.io",
      "CustomResourceDefinition/imagepulljobs.autoimagemanager.io",
      "CustomResourceDefinition/imagelistpulljobs.autoimagemanager.io",
      "CustomResourceDefinition/canaries.autoimagemanager.io",
      "CustomResourceDefinition/metrictemplates.autoimagemanager.io",
      "CustomResourceDefinition/alertproviders.autoimagemanager.io",
      "ServiceAccount/aim-controller",
      "ClusterRole/aim-controller",
      "ClusterRole/aim-controller-base",
      "ClusterRoleBinding/aim-controller",
      "Role/aim-controller-election",
      "RoleBinding/aim-controller-election",
      "ClusterRole/aim-target",
      "ClusterRole/aim-target-base",
      "ClusterRole/aim-target-routes",
      "ClusterRole/aim-controller-dicoms.services.example.com",
      "ClusterRole/aim-target-dicoms.services.example.com",
      "ValidatingAdmissionPolicy/aim-serviceimage-serialize-enforce",
      "ValidatingAdmissionPolicyBinding/aim-serviceimage-serialize-enforce",
      "ValidatingAdmissionPolicy/aim-serviceimage-serialize-warn",
      "ValidatingAdmissionPolicyBinding/aim-serviceimage-serialize-warn",
      "ValidatingAdmissionPolicy/aim-serviceimage-author",
      "ValidatingAdmissionPolicyBinding/aim-serviceimage-author",
      "ValidatingAdmissionPolicy/aim-alternateimagesource-author",
      "ValidatingAdmissionPolicyBinding/aim-alternateimagesource-author",
      "ValidatingAdmissionPolicy/aim-containerrecreaterequest-author",
      "ValidatingAdmissionPolicyBinding/aim-containerrecreaterequest-author",
      "ValidatingAdmissionPolicy/aim-agent-node",
      "ValidatingAdmissionPolicyBinding/aim-agent-node",
      "ValidatingAdmissionPolicy/aim-imagepulljob-author",
      "ValidatingAdmissionPolicyBinding/aim-imagepulljob-author",
      "ValidatingAdmissionPolicy/aim-nodeimage-agent",
      "ValidatingAdmissionPolicyBinding/aim-nodeimage-agent",
      "ValidatingAdmissionPolicy/aim-canary-author",
      "ValidatingAdmissionPolicyBinding/aim-canary-author",
      "ValidatingAdmissionPolicy/aim-canary-approval",
      "ValidatingAdmissionPolicyBinding/aim-canary-approval",
      "ValidatingAdmissionPolicy/aim-metrictemplate-author",
      "ValidatingAdmissionPolicyBinding/aim-metrictemplate-author",
      "ValidatingAdmissionPolicy/aim-alertprovider-author",
      "ValidatingAdmissionPolicyBinding/aim-alertprovider-author",
      "ValidatingAdmissionPolicy/aim-in-place-settings",
      "ValidatingAdmissionPolicyBinding/aim-in-place-settings",
      "ValidatingAdmissionPolicy/aim-in-place-only",
      "ValidatingAdmissionPolicyBinding/aim-in-place-only",
      "MutatingAdmissionPolicy/aim-alternateimagesource-new-pods",
      "MutatingAdmissionPolicyBinding/aim-alternateimagesource-new-pods",
      "MutatingAdmissionPolicy/aim-in-place-hold",
      "MutatingAdmissionPolicyBinding/aim-in-place-hold",
      "MutatingAdmissionPolicy/aim-in-place-hold-everywhere",
      "MutatingAdmissionPolicyBinding/aim-in-place-hold-everywhere",
      "MutatingAdmissionPolicy/aim-in-place-hold-statefulsets",
      "MutatingAdmissionPolicyBinding/aim-in-place-hold-statefulsets",
      "MutatingAdmissionPolicy/aim-in-place-hold-statefulsets-everywhere",
      "MutatingAdmissionPolicyBinding/aim-in-place-hold-statefulsets-everywhere",
      "MutatingAdmissionPolicy/aim-in-place-hold-daemonsets",
      "MutatingAdmissionPolicyBinding/aim-in-place-hold-daemonsets",
      "MutatingAdmissionPolicy/aim-in-place-hold-daemonsets-everywhere",
      "MutatingAdmissionPolicyBinding/aim-in-place-hold-daemonsets-everywhere",
      "MutatingAdmissionPolicy/aim-canary-hold",
      "MutatingAdmissionPolicyBinding/aim-canary-hold",
      "MutatingAdmissionPolicy/aim-canary-snapshots",
      "MutatingAdmissionPolicyBinding/aim-canary-snapshots",
      "NetworkPolicy/aim-controller",
      "Deployment/aim-controller",
    ])
  })

  test("agent prints the agents alone, and all has them unless they are left out", () => {
    const agents = [
      "Namespace/aim-agents",
      "ServiceAccount/aim-agent",
      "ClusterRole/aim-agent",
      "ClusterRoleBinding/aim-agent",
      "NetworkPolicy/aim-agent",
      "DaemonSet/aim-agent",
    ]
    const printed = manifests({ ...wanted, section: "agent" }, sources())
    expect(names(printed)).toEqual(agents)
    expect(names(manifests({ ...wanted, criSocket: "/run/k3s/containerd.sock" }, sources())).slice(-6)).toEqual(agents)
    expect(names(manifests(wanted, sources())).filter(name => agents.includes(name))).toEqual([])
    // Requests and their status, and nothing else of the cluster.
    const rules = rulesOf(printed, "aim-agent")
    expect(rules.map(({ apiGroups }) => apiGroups)).toEqual(rules.map(() => ["autoimagemanager.io"]))
    const pod = (printed.at(-1) as Json).spec.template.spec
    expect(pod.volumes).toEqual([
      { name: "runtime", hostPath: { path: "/run/containerd/containerd.sock", type: "Socket" } },
    ])
    expect(pod.securityContext).toMatchObject({ runAsNonRoot: true, runAsUser: 65532, runAsGroup: 0 })
    expect(pod.hostNetwork).toBeUndefined()
  })

  test("all that is printed is taken by a cluster, in the order of printing, and kept", async () => {
    const objects = manifests({ ...wanted, foreign: [dicoms], criSocket: "/run/containerd.sock" }, sources()) as Json[]
    const { client } = await storedWorld(virtualClock(0), ...objects)
    for (const { apiVersion, kind, metadata } of objects)
      expect(await client.get((await client.discover(apiVersion, kind))!, metadata)).toMatchObject({ kind, metadata })
  })

  test("every policy is bound, and one that only warns never refuses, not even by an error of its own", () => {
    const objects = manifests({ ...wanted, section: "policies" }, sources()) as (Manifest & { spec: PolicySpec })[]
    const [named, bindings] = ["AdmissionPolicy", "AdmissionPolicyBinding"].map(kind =>
      objects.filter(object => object.kind.endsWith(kind)),
    )
    expect(bindings!.map(({ spec }) => spec.policyName)).toEqual(named!.map(({ metadata }) => metadata.name))
    for (const [i, { metadata, spec }] of named!.entries()) {
      // About every workload of the cluster: an error of ours must not keep anyone from writing one.
      const name = String(metadata.name)
      const isAboutOthers = name.startsWith("aim-in-place-")
      const isDenial = bindings![i]!.spec.validationActions?.includes("Deny") && !isAboutOthers
      expect(spec.failurePolicy, name).toBe(isDenial ? "Fail" : "Ignore")
    }
  })

  test("another namespace reaches every place", () => {
    const text = toDocuments(manifests({ ...wanted, namespace: "elsewhere" }, declared))
    expect(text).not.toContain("aim-system")
    expect(text).toContain("- elsewhere\n")
  })

  test("what is printed reads back as the same objects, also for a YAML 1.1 reader", () => {
    const objects = manifests({ ...wanted, foreign: [dicoms] }, sources())
    for (const version of ["1.1", "1.2"] as const) {
      const documents = parseAllDocuments(toDocuments(objects), { version })
      expect(documents.map(document => document.toJS())).toEqual(JSON.parse(JSON.stringify(objects)))
    }
  })

  test("health and metrics are reached by the kubelet and by namespaces that scrape", () => {
    const [policy, deployment] = manifests(wanted, declared).slice(-2)
    const labels = { "app.kubernetes.io/name": "aim-controller" }
    expect(policy).toMatchObject({
      kind: "NetworkPolicy",
      metadata: { namespace: "aim-system" },
      spec: {
        podSelector: { matchLabels: labels },
        policyTypes: ["Ingress"],
        ingress: [
          {
            from: [{ namespaceSelector: { matchLabels: { metrics: "enabled" } } }],
            ports: [{ port: "metrics", protocol: "TCP" }],
          },
        ],
      },
    })
    const ports = [{ name: "metrics", protocol: "TCP" }]
    expect(deployment).toMatchObject({
      spec: { template: { metadata: { labels }, spec: { containers: [{ ports }] } } },
    })
  })

  test("the controller runs under Pod Security restricted", () => {
    const deployment = manifests(wanted, declared).at(-1) as Manifest & {
      spec: {
        template: { spec: { securityContext: object; containers: { image: string; securityContext: object }[] } }
      }
    }
    const { securityContext, containers } = deployment.spec.template.spec
    expect(securityContext).toMatchObject({
      runAsNonRoot: true,
      runAsUser: 65532,
      seccompProfile: { type: "RuntimeDefault" },
    })
    expect(containers[0]).toMatchObject({
      image: "example/aim:1",
      securityContext: {
        allowPrivilegeEscalation: false,
        readOnlyRootFilesystem: true,
        capabilities: { drop: ["ALL"] },
      },
    })
  })
})

describe("RESOURCE.GROUP", () => {
  test("is a plural and a group", () => {
    expect(parseForeignKind("dicoms.services.example.com")).toEqual(dicoms)
    expect(parseForeignKind("rollouts.argoproj.io")).toEqual({ plural: "rollouts", group: "argoproj.io" })
    expect(parseForeignKind("gateways.gateway.networking.k8s.io")).toEqual({
      plural: "gateways",
      group: "gateway.networking.k8s.io",
    })
  })
  const wrong: Record<string, string> = {
    Dicom: "has no group",
    dicoms: "has no group",
    "dicoms.": "has no group",
    ".example.com": "has no resource",
    "Dicoms.services.example.com": "not the plural name",
    "dicoms.Services.example.com": "not an API group",
    "dicoms/status.example.com": "not the plural name",
    "*.example.com": "not the plural name",
    "dicoms.*": "not an API group",
    "dicoms.v1alpha1.services.example.com": "leave v1alpha1 out",
    "deployments.apps": "part of every installation",
    "clusterroles.rbac.authorization.k8s.io": "cannot be a target",
    "ingresses.networking.k8s.io": "cannot be a target",
    "serviceimages.autoimagemanager.io": "cannot be a target",
  }
  for (const [text, words] of Object.entries(wrong))
    test(`${text} is refused: ${words}`, () =>
      expect(parseForeignKind(text)).toEqual({ wrong: expect.stringContaining(words) }))
})
