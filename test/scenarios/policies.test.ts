import { describe, expect, test } from "vitest"
import { crdOf } from "#api/crd.ts"
import { kinds } from "#api/kinds.ts"
import { AlternateImageSource } from "#api/v1alpha1/alternateimagesource/index.ts"
import { ServiceImage, supersedeAnnotation } from "#api/v1alpha1/serviceimage/index.ts"
import { policies } from "#cli/manifests/policies.ts"
import { testCluster } from "#cluster-sim/test-cluster.ts"
import { decisionAnnotation, parseDecision } from "#core/image/record.ts"
import { failing, imagesOf, podOf, source, switched, working } from "#test/support/alternate-sources.ts"

// The product's admission policies where `aim up` has them: on the simulated cluster. test/e2e tries every case on a
// real one.

// biome-ignore lint/suspicious/noExplicitAny: answers of several kinds.
type Json = any

/** A cluster that serves our kinds and has our policies in force. */
async function world() {
  const { cluster, send } = testCluster()
  const { storage } = cluster
  for (const manifest of [...kinds.map(crdOf), ...policies()] as Json[])
    storage.create(storage.kind(manifest.apiVersion, manifest.kind)!, manifest)
  storage.create(storage.kind("v1", "Namespace")!, { metadata: { name: "shop" } })
  return { storage, send }
}

const serviceImages = `/apis/${ServiceImage.apiVersion}/${ServiceImage.plural}`
const sources = `/apis/${AlternateImageSource.apiVersion}/namespaces/shop/${AlternateImageSource.plural}`

describe("one operation at a time", () => {
  const inProgress = { id: "g1", startedAt: "2026-01-01T00:00:00Z", phase: "InProgress" }

  /** A ServiceImage whose operation is in progress, and what is answered to a change of its image. */
  async function during(serialize: string, change: Json = {}) {
    const { send } = await world()
    const target = { apiVersion: "services.example.com/v1alpha1", kind: "Dicom" }
    const body = {
      ...{ apiVersion: ServiceImage.apiVersion, kind: ServiceImage.kind, metadata: { name: "web" } },
      spec: { target, defaultImage: "registry.test/dicom:1", serialize },
    }
    expect((await send("POST", serviceImages, body)).status).toBe(201)
    const status = { observedGeneration: 1, operation: inProgress }
    expect((await send("PATCH", `${serviceImages}/web/status`, { status })).status).toBe(200)
    return send("PATCH", `${serviceImages}/web`, { spec: { defaultImage: "registry.test/dicom:2" }, ...change })
  }

  test("Enforce refuses", async () => {
    const { status, body } = await during("Enforce")
    expect({ status, reason: body.reason, message: body.message }).toEqual({
      status: 422,
      reason: "Invalid",
      message: expect.stringContaining(
        'the image of tier "" changes while operation g1 is in progress: wait for it (aim wait si/web)',
      ),
    })
  })

  test("Enforce lets pass what is meant to overtake", async () => {
    const { status, headers } = await during("Enforce", {
      metadata: { annotations: { [supersedeAnnotation]: "1" } },
    })
    expect({ status, warning: headers.warning }).toEqual({ status: 200, warning: undefined })
  })

  test("Warn warns", async () => {
    const { status, headers } = await during("Warn")
    expect(status).toBe(200)
    expect(headers.warning).toContain("aim-serviceimage-serialize-warn")
    expect(headers.warning).toContain("changes while operation g1 is in progress and overtakes it")
  })

  test("Allow says nothing", async () => {
    const { status, headers } = await during("Allow")
    expect({ status, warning: headers.warning }).toEqual({ status: 200, warning: undefined })
  })
})

describe("authors must hold the rights that are used in their name", () => {
  const ann = { name: "ann", groups: ["system:authenticated"] }
  const target = { apiVersion: "services.example.com/v1alpha1", kind: "Dicom" }
  const fleet = { metadata: { name: "web" }, spec: { target, defaultImage: "registry.test/dicom:1" } }
  const here = { ...source("web"), metadata: { name: "web", namespace: "shop" } }
  const objects: Record<string, { of: typeof ServiceImage | typeof AlternateImageSource; object: Json; says: string }> =
    {
      ServiceImage: {
        of: ServiceImage,
        object: fleet,
        says: "you may not patch dicoms.services.example.com in all namespaces",
      },
      AlternateImageSource: {
        of: AlternateImageSource,
        object: here,
        says: "you may not patch pods in namespace shop",
      },
    }
  for (const [name, { of, object, says }] of Object.entries(objects))
    test(name, async () => {
      const { storage } = await world()
      const kind = storage.kind(of.apiVersion, of.kind)!
      const whole = { apiVersion: of.apiVersion, kind: of.kind, ...object }
      expect(() => storage.create(kind, whole, { user: ann })).toThrow(says)
      expect(storage.create(kind, whole).metadata.name).toBe("web")
    })
})

describe("an analysis of a tier asks on behalf of a namespace", () => {
  const everything = {
    apiGroups: ["services.example.com", ServiceImage.group],
    resources: ["dicoms", "serviceimages"],
    verbs: ["*"],
  }
  const canariesThere = { apiGroups: [ServiceImage.group], resources: ["canaries"], verbs: ["create"] }
  const servicesThere = { apiGroups: [""], resources: ["services"], verbs: ["patch"] }
  const secretsThere = { apiGroups: [""], resources: ["secrets"], verbs: ["get"] }
  const analysis = (hook: Json = {}) => ({
    interval: "1m",
    threshold: 1,
    webhooks: [{ name: "gate", url: "https://gate.example.com/", ...hook }],
  })
  const judged = (tier: Json, more: Json = {}) => ({
    ...{ apiVersion: ServiceImage.apiVersion, kind: ServiceImage.kind, metadata: { name: "web" } },
    spec: {
      target: { apiVersion: "services.example.com/v1alpha1", kind: "Dicom" },
      defaultImage: "registry.test/dicom:1",
      tiers: [{ upgradeTier: "early", ...tier }],
      analysisNamespace: "shop",
      ...more,
    },
  })
  const ann = { name: "ann", groups: ["system:authenticated"] }

  /** What ann may do: everything to ServiceImages and Dicoms, and these in the namespace shop. */
  async function annWith(rules: Json[]) {
    const { storage } = await world()
    const create = (apiVersion: string, kind: string, object: Json) =>
      storage.create(storage.kind(apiVersion, kind)!, { apiVersion, kind, ...object })
    const rbac = "rbac.authorization.k8s.io/v1"
    const subjects = [{ apiGroup: "rbac.authorization.k8s.io", kind: "User", name: "ann" }]
    const roleRef = (kind: string) => ({ apiGroup: "rbac.authorization.k8s.io", kind, name: "ann" })
    create(rbac, "ClusterRole", { metadata: { name: "ann" }, rules: [everything] })
    create(rbac, "ClusterRoleBinding", { metadata: { name: "ann" }, roleRef: roleRef("ClusterRole"), subjects })
    create(rbac, "Role", { metadata: { name: "ann", namespace: "shop" }, rules })
    create(rbac, "RoleBinding", { metadata: { name: "ann", namespace: "shop" }, roleRef: roleRef("Role"), subjects })
    const kind = storage.kind(ServiceImage.apiVersion, ServiceImage.kind)!
    return {
      create: (object: Json) => storage.create(kind, object, { user: ann }),
      asAdmin: (object: Json) => storage.create(kind, object),
      update: (object: Json) => storage.update(kind, object, { user: ann }),
    }
  }

  test.each([
    ["no right there", [], {}, "you may not create canaries in namespace shop"],
    [
      "Canaries there, and not the Services that every Canary has patched",
      [canariesThere],
      {},
      "you may not patch services in namespace shop",
    ],
    ["Services there, and no Canaries", [servicesThere], {}, "you may not create canaries in namespace shop"],
    [
      "the right to patch Canaries, which creates none",
      [{ ...canariesThere, verbs: ["patch"] }, servicesThere],
      {},
      "you may not create canaries",
    ],
    ["both there", [canariesThere, servicesThere], {}, undefined],
    [
      "a signed hook",
      [canariesThere, servicesThere],
      { secretRef: { name: "gate" } },
      "you may not get secrets in namespace shop",
    ],
    [
      "a signed hook, and the right to list Secrets",
      [canariesThere, servicesThere, { ...secretsThere, verbs: ["list"] }],
      { secretRef: { name: "gate" } },
      "you may not get secrets in namespace shop",
    ],
    [
      "a signed hook, and one Secret of several",
      [canariesThere, servicesThere, { ...secretsThere, resourceNames: ["gate"] }],
      { secretRef: { name: "gate" } },
      "you may not get secrets in namespace shop",
    ],
    [
      "a signed hook, and Secrets",
      [canariesThere, servicesThere, secretsThere],
      { secretRef: { name: "gate" } },
      undefined,
    ],
  ])("%s", async (_, rules, hook, refusal) => {
    const { create } = await annWith(rules)
    const object = judged({ analysis: analysis(hook) })
    if (refusal) expect(() => create(object)).toThrow(refusal)
    else expect(create(object).metadata.name).toBe("web")
  })

  test("a change of anything else needs no such right, and a change of the analysis does", async () => {
    const { asAdmin, update } = await annWith([])
    const stored = asAdmin(judged({ analysis: analysis() }))
    const paused = update({ ...stored, spec: { ...stored.spec, paused: true } })
    expect(paused.spec.paused).toBe(true)
    const elsewhere = { ...paused, spec: { ...paused.spec, analysisNamespace: "kube-system" } }
    expect(() => update(elsewhere)).toThrow("you may not create canaries in namespace kube-system")
    const [tier] = paused.spec.tiers
    const other = { ...paused.spec, tiers: [{ ...tier, analysis: { ...tier.analysis, threshold: 9 } }] }
    expect(() => update({ ...paused, spec: other })).toThrow("you may not create canaries in namespace shop")
    // The tier is a part of the question: the same analysis for another tier is another one.
    const moved = { ...paused.spec, tiers: [{ ...tier, upgradeTier: "late" }] }
    expect(() => update({ ...paused, spec: moved })).toThrow("you may not create canaries in namespace shop")
    const secret = { ...tier.analysis, webhooks: [{ ...tier.analysis.webhooks[0], secretRef: { name: "gate" } }] }
    expect(() => update({ ...paused, spec: { ...paused.spec, tiers: [{ ...tier, analysis: secret }] } })).toThrow()
    // To ask less needs no right: what is asked no more is asked of no one.
    const none = { ...paused.spec, tiers: [{ upgradeTier: "early" }] }
    expect(update({ ...paused, spec: none }).spec.tiers[0]).not.toHaveProperty("analysis")
  })
})

describe("new pods during an incident", () => {
  /** What becomes of a pod that is created while a source reports these incidents. */
  async function created(pod: Json, entries: Json[] = [switched("app")], spec: Json = {}) {
    const { send } = await world()
    expect((await send("POST", sources, source("web", spec))).status).toBe(201)
    const written = await send("PATCH", `${sources}/web/status`, { status: { targetsAvailable: entries } })
    expect(written.status).toBe(200)
    const { status, body } = await send("POST", "/api/v1/namespaces/shop/pods", pod)
    expect(status, body.message).toBe(201)
    return body
  }
  const app = { name: "app", image: `${failing}:v1` }

  test("a container that fails pulls from where it works, and the pod tells why", async () => {
    const pod = await created(podOf([app, { name: "other", image: app.image }], { annotations: { own: "yes" } }))
    expect(imagesOf(pod)).toEqual({ app: `${working}:v1`, other: app.image })
    const decision = parseDecision(pod.metadata.annotations[decisionAnnotation])
    expect(decision).toMatchObject({ from: app.image, to: `${working}:v1`, by: "alternateimagesource/web" })
    expect(pod.metadata.annotations.own).toBe("yes")
  })

  test("init containers too, and a pod without annotations gets them", async () => {
    const pod = podOf([app], {}, { initContainers: [{ name: "setup", image: app.image }] })
    const made = await created(pod, [switched("app"), switched("setup")])
    expect(imagesOf(made)).toEqual({ setup: `${working}:v1`, app: `${working}:v1` })
    expect(made.metadata.annotations[decisionAnnotation]).toContain("setup")
  })

  const unchanged: Record<string, { pod?: Json; entries?: Json[]; spec?: Json }> = {
    "of other labels": { pod: podOf([app], { labels: { app: "other" } }) },
    "of another tag": { pod: podOf([{ ...app, image: `${failing}:v9` }]) },
    "without an incident": { entries: [switched("app", { working: "" })] },
    "that want to be left alone": { pod: podOf([app], { labels: { app: "web", "autoimagemanager.io/skip": "true" } }) },
    "that never pull": { pod: podOf([{ ...app, imagePullPolicy: "Never" }]) },
    "whose repository was disabled since": { spec: { policy: { disabledRepositories: [working] } } },
  }
  for (const [name, { pod = podOf([app]), entries, spec }] of Object.entries(unchanged))
    test(`pods ${name} stay as they are`, async () => {
      const made = await created(pod, entries, spec)
      expect(imagesOf(made).app).toBe(pod.spec.containers[0].image)
      expect(made.metadata.annotations).toBeUndefined()
    })
})
