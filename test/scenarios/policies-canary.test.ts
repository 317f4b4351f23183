import { describe, expect, test } from "vitest"
import { crdOf } from "#api/crd.ts"
import { AlertProvider } from "#api/v1alpha1/alertprovider/index.ts"
import { approvedAnnotation, approvedByAnnotation } from "#api/v1alpha1/canary/annotations.ts"
import { Canary } from "#api/v1alpha1/canary/index.ts"
import { MetricTemplate } from "#api/v1alpha1/metrictemplate/index.ts"
import { policyManifests } from "#cli/manifests/policies.ts"
import { testCluster } from "#cluster-sim/test-cluster.ts"
import { parseHold } from "#core/in-place/marks.ts"
import { heldMark, strategyAnnotation } from "#core/in-place/names.ts"
import { canaryApproval } from "#policies/canary-approval.ts"
import { alertProviderAuthor, canaryAuthor, metricTemplateAuthor } from "#policies/canary-author.ts"
import { canaryHold } from "#policies/canary-hold.ts"
import type { Policy } from "#policies/policy.ts"

// The policies of Canary, which are not installed before its controller is.

// biome-ignore lint/suspicious/noExplicitAny: answers of several kinds.
type Json = any

function world(...policies: Policy[]) {
  const { cluster, send } = testCluster()
  const { storage } = cluster
  const create = (manifest: Json, options?: Json) =>
    storage.create(storage.kind(manifest.apiVersion, manifest.kind)!, manifest, options)
  const kinds = [Canary, MetricTemplate, AlertProvider]
  for (const manifest of [...kinds.map(crdOf), ...policies.flatMap(policyManifests)] as Json[]) create(manifest)
  create({ apiVersion: "v1", kind: "Namespace", metadata: { name: "shop" } })
  const update = (manifest: Json, options?: Json) =>
    storage.update(storage.kind(manifest.apiVersion, manifest.kind)!, manifest, options)
  return { create, update, send }
}

const deployments = "/apis/apps/v1/namespaces/shop/deployments"
const canaries = `/apis/${Canary.apiVersion}/namespaces/shop/${Canary.plural}`

const canary = (spec: Json = {}, name = "web") => ({
  apiVersion: Canary.apiVersion,
  kind: Canary.kind,
  metadata: { name, namespace: "shop" },
  spec: {
    targetRef: { apiVersion: "apps/v1", kind: "Deployment", name: "web" },
    service: { port: 80 },
    analysis: { interval: "1m", threshold: 5, stepWeight: 10 },
    ...spec,
  },
})

const podTemplate = (image: string) => ({
  metadata: { labels: { app: "web" } },
  spec: { containers: [{ name: "app", image: `registry.test/web:${image}` }] },
})
const deployment = (image = "1", metadata: Json = {}, spec: Json = {}) => ({
  apiVersion: "apps/v1",
  kind: "Deployment",
  metadata: { name: "web", namespace: "shop", ...metadata },
  spec: { replicas: 2, selector: { matchLabels: { app: "web" } }, template: podTemplate(image), ...spec },
})
const toImage = (image: string) => ({ spec: { template: podTemplate(image) } })

describe("a change of the template is held in the very write", () => {
  type Place = { phase?: string; conditions?: Json[]; more?: Json[]; spec?: Json; object?: Json }

  async function place({ phase = "Initialized", conditions, more = [], spec, object = deployment() }: Place = {}) {
    const { send } = world(canaryHold)
    const ask = async (method: "POST" | "PATCH" | "PUT" | "DELETE" | "GET", path: string, body?: Json) => {
      const answer = await send(method, path, body)
      expect(answer.status, answer.body.message).toBeLessThan(300)
      return answer.body
    }
    for (const each of [canary(spec), ...more]) {
      await ask("POST", canaries, each)
      if (phase)
        await ask("PATCH", `${canaries}/${each.metadata.name}/status`, {
          status: { phase, ...(conditions && { conditions }) },
        })
    }
    await ask("POST", deployments, object)
    const change = (body: Json) => ask("PATCH", `${deployments}/web`, body)
    const put = (body: Json) => ask("PUT", `${deployments}/web`, body)
    return { ask, change, put }
  }
  const marks = ({ metadata: { labels, annotations }, spec }: Json) => ({
    label: labels?.[heldMark],
    hold: parseHold(annotations?.[heldMark]),
    paused: spec.paused ?? false,
  })
  const held = { label: "canary", hold: { by: "canary", name: "web", generation: 1 }, paused: true }
  const free = { label: undefined, hold: undefined, paused: false }

  test("and another one keeps the hold of the first", async () => {
    const { change } = await place()
    expect(marks(await change(toImage("2")))).toEqual(held)
    expect(marks(await change(toImage("3")))).toEqual(held)
  })

  test("other changes are not held", async () => {
    const { change } = await place()
    expect(marks(await change({ spec: { replicas: 5 }, metadata: { labels: { a: "b" } } }))).toEqual(free)
  })

  const stalled = {
    type: "Stalled",
    status: "True",
    reason: "Forbidden",
    observedGeneration: 1,
    message: "",
    lastTransitionTime: "2026-01-01T00:00:00Z",
  }
  const cases: Record<string, { place: Place; change?: Json; is: Json }> = {
    "while the Canary is suspended": { place: { spec: { suspend: true } }, is: held },
    "not before the controller has adopted the target": { place: { phase: "" }, is: free },
    "not while it is being adopted": { place: { phase: "Initializing" }, is: free },
    "not while the Canary goes": { place: { phase: "Terminating" }, is: free },
    "not where the controller may not write": { place: { conditions: [stalled] }, is: free },
    "not of another Deployment": { place: { spec: { targetRef: { apiVersion: "apps/v1", kind: "Deployment", name: "other" } } }, is: free },
    "not of a StatefulSet of the same name": { place: { spec: { targetRef: { apiVersion: "apps/v1", kind: "StatefulSet", name: "web" } } }, is: free },
    "not where the owner has paused": { place: { object: deployment("1", {}, { paused: true }) }, is: { ...free, paused: true } },
    "not where the owner pauses with the change": { place: {}, change: { spec: { paused: true, template: podTemplate("2") } }, is: { ...free, paused: true } },
    "also where updates are to go in place: it has adopted the Deployment": { place: { object: deployment("1", { annotations: { [strategyAnnotation]: "InPlaceIfPossible" } }) }, is: held },
    "not where updates are to go in place before it has adopted the Deployment": { place: { phase: "Initializing", object: deployment("1", { annotations: { [strategyAnnotation]: "InPlaceIfPossible" } }) }, is: free },
    "instead of an update in place that holds in the same write": { place: {}, change: { spec: { paused: true, template: podTemplate("2") }, metadata: { labels: { [heldMark]: "in-place" }, annotations: { [heldMark]: '{"by":"in-place","original":{"paused":false},"generation":1}' } } }, is: held },
    "not where the owner has paused, whatever marks come with the change": { place: { object: deployment("1", {}, { paused: true }) }, change: { spec: { paused: true, template: podTemplate("2") }, metadata: { labels: { [heldMark]: "in-place" }, annotations: { [heldMark]: '{"by":"in-place","generation":1}' } } }, is: expect.objectContaining({ label: "in-place" }) },
    "once, by the first of two Canaries": { place: { more: [canary({}, "zweb")] }, is: held },
    "also where an undo brings an old annotation back": { place: {}, change: { ...toImage("2"), metadata: { annotations: { [heldMark]: '{"by":"canary","name":"web","generation":77}' } } }, is: held },
  } // biome-ignore format: a table
  for (const [name, { place: given, change = toImage("2"), is }] of Object.entries(cases))
    test(name, async () => expect(marks(await (await place(given)).change(change))).toEqual(is))

  test("not where another part of aim holds", async () => {
    const other = {
      labels: { [heldMark]: "in-place" },
      annotations: { [heldMark]: '{"by":"in-place","generation":1}' },
    }
    const { change } = await place({ object: deployment("1", other, { paused: true }) })
    expect(marks(await change(toImage("2")))).toMatchObject({ label: "in-place", hold: { by: "in-place" } })
  })

  test("the marks come back until the hold is released", async () => {
    const { change, put } = await place()
    await change(toImage("2"))
    expect(marks(await change({ metadata: { labels: { [heldMark]: null } } }))).toEqual(held)
    expect(marks(await change({ metadata: { annotations: { [heldMark]: null } } }))).toEqual(held)
    expect(marks(await change({ metadata: { annotations: { [heldMark]: "{}" } } }))).toEqual(held)
    // A manifest that replaces the object has neither marks nor pause.
    expect(marks(await put(deployment("2")))).toEqual(held)
    // The owner resumes: the pause goes, and the marks stay for the controller to see.
    expect(marks(await change({ spec: { paused: null } }))).toEqual({ ...held, paused: false })
  })

  test("a release takes the annotation and the pause, and then the label", async () => {
    const { change } = await place()
    await change(toImage("2"))
    const released = await change({ spec: { paused: null }, metadata: { annotations: { [heldMark]: null } } })
    expect(marks(released)).toEqual({ ...free, label: "canary" })
    expect(marks(await change({ metadata: { labels: { [heldMark]: null } } }))).toEqual(free)
  })

  test("a Canary that is being deleted holds nothing more, and what it holds keeps its marks", async () => {
    const { ask, change } = await place()
    await change(toImage("2"))
    await ask("PATCH", `${canaries}/web`, { metadata: { finalizers: ["autoimagemanager.io/canary"] } })
    await ask("DELETE", `${canaries}/web`)
    expect(marks(await change({ metadata: { annotations: { [heldMark]: null } } }))).toEqual(held)
    await change({ spec: { paused: null }, metadata: { annotations: { [heldMark]: null } } })
    await change({ metadata: { labels: { [heldMark]: null } } })
    expect(marks(await change(toImage("3")))).toEqual(free)
  })
})

describe("authors must hold the rights that are used in their name", () => {
  const ann = { name: "ann", groups: ["system:authenticated"] }
  const rbac = "rbac.authorization.k8s.io"
  type Right = { apiGroups: string[]; resources: string[]; verbs: string[]; resourceNames?: string[] }
  const patch = (resource: string, group = ""): Right => ({
    apiGroups: [group],
    resources: [resource],
    verbs: ["patch"],
  })
  const secrets = (...resourceNames: string[]): Right => ({
    apiGroups: [""],
    resources: ["secrets"],
    verbs: ["get"],
    ...(resourceNames.length > 0 && { resourceNames }),
  })

  /** What ann is answered with these rights in the namespace. */
  function attempt(object: Json, rights: Right[]): string {
    const { create } = world(canaryAuthor, metricTemplateAuthor, alertProviderAuthor)
    const metadata = { name: "ann", namespace: "shop" }
    create({ apiVersion: `${rbac}/v1`, kind: "Role", metadata, rules: rights })
    const roleRef = { apiGroup: rbac, kind: "Role", name: "ann" }
    const subjects = [{ apiGroup: rbac, kind: "User", name: "ann" }]
    create({ apiVersion: `${rbac}/v1`, kind: "RoleBinding", metadata, roleRef, subjects })
    try {
      create(object, { user: ann })
      return ""
    } catch (error) {
      return (error as Error).message
    }
  }
  const targetOf = (kind: string) => ({ targetRef: { apiVersion: "apps/v1", kind, name: "web" } })
  const [deploys, services, routes] = [
    patch("deployments", "apps"),
    patch("services"),
    patch("httproutes", "gateway.networking.k8s.io"),
  ]
  const gateway = { service: { port: 80, gatewayRefs: [{ name: "public" }] } }
  const scaler = (kind: string) => ({ autoscalerRef: { apiVersion: "autoscaling/v2", kind, name: "web" } })
  const scalers = patch("horizontalpodautoscalers", "autoscaling")
  const component = ({ service }: Json) => ({ provider: "oam", service: { name: "shop", ...service } })
  const signed = {
    analysis: {
      interval: "1m",
      threshold: 5,
      stepWeight: 10,
      webhooks: [{ name: "a", url: "http://a/", secretRef: { name: "key" } }],
    },
  }
  const template = (secretRef?: Json) => ({
    apiVersion: MetricTemplate.apiVersion,
    kind: MetricTemplate.kind,
    metadata: { name: "errors", namespace: "shop" },
    spec: {
      provider: { type: "prometheus", address: "http://prometheus:9090", ...(secretRef && { secretRef }) },
      query: "up",
    },
  })
  const provider = (spec: Json) => ({
    apiVersion: AlertProvider.apiVersion,
    kind: AlertProvider.kind,
    metadata: { name: "chat", namespace: "shop" },
    spec: { type: "slack", ...spec },
  })
  const key = { secretRef: { name: "key" } }

  const cases: [string, Json, Right[], string?][] = [
    ["a Canary without any right", canary(), [], "deployments.apps patched"],
    ["with Services alone", canary(), [services], "deployments.apps patched"],
    ["with the Deployment alone", canary(), [deploys], "services patched"],
    ["with both", canary(), [deploys, services]],
    ["with the right to create only", canary(), [{ ...deploys, verbs: ["create"] }, services], "deployments.apps patched"],
    ["a StatefulSet with rights on Deployments", canary(targetOf("StatefulSet")), [deploys, services], "statefulsets.apps patched"],
    ["a StatefulSet", canary(targetOf("StatefulSet")), [patch("statefulsets", "apps"), services]],
    ["a DaemonSet with rights on Deployments", canary(targetOf("DaemonSet")), [deploys, services], "daemonsets.apps patched"],
    ["a route without the right", canary(gateway), [deploys, services], "httproutes.gateway.networking.k8s.io patched"],
    ["a route by provider without the right", canary({ provider: "gatewayapi:v1", ...gateway }), [deploys, services], "httproutes"],
    ["a route", canary(gateway), [deploys, services, routes]],
    ["a TraefikService without the right", canary({ provider: "traefik" }), [deploys, services, routes], "traefikservices.traefik.io patched"],
    ["a TraefikService", canary({ provider: "traefik" }), [deploys, services, patch("traefikservices", "traefik.io")]],
    ["an HTTPProxy without the right", canary({ provider: "contour" }), [deploys, services, routes], "httpproxies.projectcontour.io patched"],
    ["an autoscaler without the right", canary(scaler("HorizontalPodAutoscaler")), [deploys, services], "horizontalpodautoscalers.autoscaling"],
    ["an autoscaler", canary(scaler("HorizontalPodAutoscaler")), [deploys, services, patch("horizontalpodautoscalers", "autoscaling")]],
    ["a ScaledObject without the right", canary(scaler("ScaledObject")), [deploys, services], "scaledobjects.keda.sh"],
    ["a component without the right on autoscalers", canary(component(gateway)), [deploys, services, routes], "horizontalpodautoscalers.autoscaling"],
    ["a component", canary(component(gateway)), [deploys, services, routes, scalers]],
    ["a component without the right on Deployments", canary(component(gateway)), [services, routes, scalers], "deployments.apps patched"],
    ["a component without the right on routes", canary(component(gateway)), [deploys, services, scalers], "httproutes.gateway.networking.k8s.io patched"],
    ["a component in a mesh without the right", canary(component({ service: { port: 80 } })), [deploys, services, scalers], "trafficsplits.split.smi-spec.io patched"],
    ["a component in a mesh", canary(component({ service: { port: 80 } })), [deploys, services, scalers, patch("trafficsplits", "split.smi-spec.io")]],
    ["a signed hook without the right", canary(signed), [deploys, services], "you may not get secrets"],
    ["a signed hook", canary(signed), [deploys, services, secrets()]],
    ["a template without a Secret", template(), []],
    ["a template with a Secret that its author cannot read", template(key.secretRef), [], "sends Secret key to its address"],
    ["a template with another Secret's right", template(key.secretRef), [secrets("other")], "sends Secret key"],
    ["a template with the right to list", template(key.secretRef), [{ ...secrets(), verbs: ["list"] }], "sends Secret key"],
    ["a template with this Secret's right", template(key.secretRef), [secrets("key")]],
    ["a provider with an address", provider({ address: "https://chat.example.com" }), []],
    ["a provider with a Secret that its author cannot read", provider(key), [], "AlertProvider sends Secret key"],
    ["a provider with this Secret's right", provider(key), [secrets("key")]],
  ] // biome-ignore format: a table
  test.each(cases)("%s", (_, object, rights, says) => {
    const answer = attempt(object, rights)
    if (says) expect(answer).toContain(says)
    else expect(answer).toBe("")
  })
})

describe("an approval carries the name of the user that writes it", () => {
  const ann = { name: "ann", groups: ["system:authenticated"] }
  const marks = (approved?: string, by?: string) => ({
    ...(approved !== undefined && { [approvedAnnotation]: approved }),
    ...(by !== undefined && { [approvedByAnnotation]: by }),
  })

  type Row = [name: string, before: Json | undefined, after: Json, isRefused: boolean]
  const rows: Row[] = [
    ["her own name", marks(), marks("a", "ann"), false],
    ["another's name", marks(), marks("a", "bob"), true],
    ["no name", marks(), marks("a"), true],
    ["another approval under the name that is there", marks("a", "bob"), marks("b", "bob"), true],
    ["her own approval instead", marks("a", "bob"), marks("b", "ann"), false],
    ["her name on the approval of another", marks("a", "bob"), marks("a", "ann"), false],
    ["the name of another on an approval of hers", marks("a", "ann"), marks("a", "bob"), true],
    ["the name is taken away", marks("a", "ann"), marks("a"), true],
    ["the approval is taken away", marks("a", "bob"), marks(undefined, "bob"), false],
    ["another annotation, beside the approval of another", marks("a", "bob"), { ...marks("a", "bob"), note: "b" }, false],
    ["a Canary that is created with an approval of another", undefined, marks("a", "bob"), true],
    ["a Canary that is created with an approval of hers", undefined, marks("a", "ann"), false],
  ] // biome-ignore format: a table
  test.each(rows)("%s", (_, before, after, isRefused) => {
    const { create, update } = world(canaryApproval)
    const withMarks = (annotations: Json, { metadata, ...rest }: Json = canary()) => ({
      ...rest,
      metadata: { ...metadata, annotations },
    })
    const write = () => {
      if (!before) return create(withMarks(after), { user: ann })
      const by = { name: before[approvedByAnnotation] ?? "bob", groups: ["system:authenticated"] }
      return update(withMarks(after, create(withMarks(before), { user: by })), { user: ann })
    }
    if (isRefused) expect(write).toThrow("write ann in autoimagemanager.io/approved-by")
    else expect(write().metadata.annotations).toMatchObject(after)
  })
})
