import { afterAll, beforeAll, describe, expect, test } from "vitest"
import { maxTargetsAvailable } from "#api/v1alpha1/alternateimagesource/index.ts"
import { decisionAnnotation, parseDecision } from "#core/image/record.ts"
import { parseInstant } from "#lib/instant.ts"
import {
  created,
  createSource,
  failing,
  imagesOf,
  installSources,
  podOf,
  podsPath,
  policyPaths,
  removePolicies,
  source,
  sourcesPath,
  switched,
  working,
  writeStatus,
} from "#test/support/alternate-sources.ts"
import { type Answer, ask } from "#test/support/ask.ts"
import {
  type Access,
  floor,
  type Json,
  type Rules,
  serviceAccountAccess,
  uniqueNamespace,
  until,
} from "#test/support/floor.ts"

beforeAll(installSources)
afterAll(removePolicies)

test("the server finds nothing wrong with the expressions and the types they meet", async () => {
  const path = policyPaths.find(each => each.includes("/validatingadmissionpolicies/"))!
  const { status } = await until(`${path} to be checked`, async () => {
    const policy = await floor().api.get(path)
    return policy.status?.observedGeneration === policy.metadata.generation && policy
  })
  expect(status.typeChecking).toEqual({})
})

describe("the rights of an author of an AlternateImageSource", () => {
  const manage: Rules = [
    { apiGroups: ["autoimagemanager.io"], resources: ["alternateimagesources"], verbs: ["create", "update", "patch"] },
    { apiGroups: ["autoimagemanager.io"], resources: ["alternateimagesources/status"], verbs: ["patch"] },
  ]
  const groups: Record<string, string> = {
    pods: "",
    deployments: "apps",
    statefulsets: "apps",
    daemonsets: "apps",
    replicasets: "apps",
    jobs: "batch",
    cronjobs: "batch",
  }
  const mayPatch = (resources: string[]): Rules =>
    resources.map(resource => ({ apiGroups: [groups[resource]!], resources: [resource], verbs: ["patch"] }))
  const every = Object.keys(groups)
  const but = (resource: string) => every.filter(each => each !== resource)

  const forTargets = (...types: Json[]): Json => ({
    imageSourceReplacements: [
      { equivalentRepositories: [failing, working], targets: types.map(type => ({ type, name: "web" })) },
    ],
  })
  const template: Json = { policy: { apply: "Template" } }

  type Case = { may: string[]; spec: Json; lacks?: string }
  const cases: Record<string, Case> = {
    "pods are enough for everything in the namespace": { may: ["pods"], spec: {} },
    "without pods nothing": { may: but("pods"), spec: {}, lacks: "pods" },
    "without pods nothing, whatever is named": {
      may: but("pods"),
      spec: forTargets({ group: "apps", kind: "deployment" }),
      lacks: "pods",
    },
    "a pod named": { may: ["pods"], spec: forTargets({ kind: "pod" }) },
    "a custom kind, of which only the pods are patched": {
      may: ["pods"],
      spec: forTargets({ group: "services.example.com", kind: "Dicom" }, { kind: "dicom" }),
    },
    "a custom kind with a familiar name": {
      may: ["pods"],
      spec: forTargets({ group: "batch.example.com", kind: "Job" }),
    },
    "Template for every workload": { may: every, spec: template },
    "Template for a custom kind": { may: ["pods"], spec: { ...forTargets({ kind: "dicom" }), ...template } },
    "Template for what is named": {
      may: ["pods", "deployments"],
      spec: { ...forTargets({ kind: "deployment" }), ...template },
    },
    "one replacement of several names another kind": {
      may: ["pods", "deployments"],
      spec: {
        imageSourceReplacements: [
          { equivalentRepositories: [failing] },
          ...forTargets({ kind: "deployment" }, { kind: "cronjob" }).imageSourceReplacements,
        ],
      },
      lacks: "cronjobs.batch",
    },
  }
  for (const resource of but("pods")) {
    const group = groups[resource]!
    const kind = resource.slice(0, -1)
    const lacks = `${resource}.${group}`
    const spellings: Json[] = [
      { group, kind },
      { kind },
      { kind: kind.toUpperCase() },
      { kind: resource },
      { group: `${group}/v1`, kind },
      { group: group.toUpperCase(), kind },
    ]
    for (const type of spellings) {
      cases[`${JSON.stringify(type)} without the right`] = { may: but(resource), spec: forTargets(type), lacks }
      cases[`${JSON.stringify(type)} with the right`] = { may: ["pods", resource], spec: forTargets(type) }
    }
    cases[`Template for every workload but ${resource}`] = { may: but(resource), spec: template, lacks }
  }

  test("each kind that is named, and pods, must be the author's to patch", async () => {
    const namespace = await uniqueNamespace()
    const tenants = await tenantsOf(namespace, [
      ...every.map(but),
      ["pods"],
      ...but("pods").map(each => ["pods", each]),
      every,
    ])
    await inForce(namespace, tenants(but("pods")))
    for (const [name, { may, spec, lacks }] of Object.entries(cases)) {
      const answer = await tryCreate(namespace, tenants(may), source("web", spec))
      expect({ [name]: outcome(answer) }).toEqual({ [name]: lacks ? "refused" : "accepted" })
      if (lacks) expect(answer.body.message).toContain(`you may not patch ${lacks} in namespace ${namespace}`)
    }
  })

  test("60 targets of every kind, and as many as the schema admits, can be afforded", async () => {
    const namespace = await uniqueNamespace()
    const tenants = await tenantsOf(namespace, [every, but("cronjobs")])
    await inForce(namespace, await tenantWithout(namespace))
    const kinds = every.map(resource => ({ group: groups[resource], kind: resource.slice(0, -1) }))
    const targets = (count: number) =>
      Array.from({ length: count }, (_, i) => ({ type: kinds[i % kinds.length], name: `${"n".repeat(200)}-${i}` }))
    const sixty = { imageSourceReplacements: [{ equivalentRepositories: [failing, working], targets: targets(60) }] }
    const most = {
      imageSourceReplacements: Array.from({ length: 32 }, (_, i) => ({
        equivalentRepositories: [`${failing}-${i}`, `${working}-${i}`],
        targets: targets(64),
      })),
    }
    for (const spec of [sixty, most]) {
      expect(outcome(await tryCreate(namespace, tenants(every), source("web", spec)))).toBe("accepted")
      expect(outcome(await tryCreate(namespace, tenants(but("cronjobs")), source("web", spec)))).toBe("refused")
    }
  })

  test("an update is judged when it changes the spec, and statuses are written as ever", async () => {
    const namespace = await uniqueNamespace()
    const tenants = await tenantsOf(namespace, [["pods"], []])
    const [author, stranger] = [tenants(["pods"]), tenants([])]
    await inForce(namespace, stranger)
    const name = await createSource(namespace, source("web", forTargets({ kind: "deployment" })))
    const path = sourcesPath(namespace, name)
    const patch = (access: Access, body: Json, at = path) => ask("PATCH", at, body, { access })

    // It names Deployments, which the author may not patch: the author may label it, and not change it.
    expect(outcome(await patch(author, { metadata: { labels: { team: "a" } } }))).toBe("accepted")
    expect(outcome(await patch(author, { spec: template }))).toBe("refused")
    expect(outcome(await patch(author, { spec: forTargets({ kind: "pod" }) }))).toBe("accepted")
    expect(outcome(await patch(author, { spec: forTargets({ kind: "deployment" }) }))).toBe("refused")
    expect(outcome(await patch(stranger, { metadata: { labels: { team: "b" } } }))).toBe("accepted")
    expect(outcome(await patch(stranger, { spec: { policy: { confirmSeconds: 1 } } }))).toBe("refused")
    expect(outcome(await patch(stranger, { status: { targets: 7 } }, `${path}/status`))).toBe("accepted")
    expect((await floor().api.get(path)).status.targets).toBe(7)
  })

  /** Service accounts that may manage AlternateImageSources and patch these resources. */
  async function tenantsOf(namespace: string, rights: string[][]): Promise<(resources: string[]) => Access> {
    const known = new Map<string, Access>()
    for (const [i, resources] of rights.entries())
      known.set(
        `${resources}`,
        await serviceAccountAccess(namespace, `tenant-${i}`, [...manage, ...mayPatch(resources)]),
      )
    return resources => known.get(`${resources}`)!
  }

  const tenantWithout = (namespace: string) => serviceAccountAccess(namespace, "nobody", manage)

  /** Stored is not yet in force: the server learns of its own policies, and of roles, by a watch. */
  const inForce = (namespace: string, unauthorized: Access) =>
    until("the policy to be in force", async () => {
      return outcome(await tryCreate(namespace, unauthorized, source("web"))) === "refused"
    })

  const tryCreate = (namespace: string, access: Access, object: Json) =>
    ask("POST", `${sourcesPath(namespace)}?dryRun=All`, object, { access })

  function outcome({ status, body }: Answer): string {
    if (status < 300) return "accepted"
    const isOurs = body.message.includes("ValidatingAdmissionPolicy 'aim-alternateimagesource-author'")
    return status === 403 && isOurs ? "refused" : `${status}: ${body.message}`
  }
})

describe("where new pods pull from", () => {
  const app = { name: "app", image: `${failing}:v1` }
  const digest = `sha256:${"0123456789abcdef".repeat(4)}`

  type Case = { entries?: Json[]; spec?: Json; pod?: Json; images: Record<string, string> }
  const unchanged = { app: app.image }
  const cases: Record<string, Case> = {
    "a container in an incident": { images: { app: `${working}:v1` } },
    "only the container that fails": {
      pod: podOf([app, { name: "other", image: app.image }]),
      images: { app: `${working}:v1`, other: app.image },
    },
    "an init container": {
      entries: [switched("setup")],
      pod: podOf([app], {}, { initContainers: [{ name: "setup", image: app.image }] }),
      images: { setup: `${working}:v1`, app: app.image },
    },
    "two containers, each its own incident": {
      entries: [switched("app"), switched("log", { image: `${failing}:log` })],
      pod: podOf([app, { name: "log", image: `${failing}:log` }]),
      images: { app: `${working}:v1`, log: `${working}:log` },
    },
    "a digest is kept": {
      entries: [switched("app", { image: `${failing}@${digest}` })],
      pod: podOf([{ name: "app", image: `${failing}@${digest}` }]),
      images: { app: `${working}@${digest}` },
    },
    "tag and digest are kept": {
      entries: [switched("app", { image: `${failing}:v1@${digest}` })],
      pod: podOf([{ name: "app", image: `${failing}:v1@${digest}` }]),
      images: { app: `${working}:v1@${digest}` },
    },
    "a digest is added where the same bits are a must": {
      entries: [switched("app", { pin: digest })],
      images: { app: `${working}:v1@${digest}` },
    },
    "neither tag nor digest": {
      entries: [switched("app", { image: failing })],
      pod: podOf([{ name: "app", image: failing }]),
      images: { app: working },
    },
    "a host with a port": {
      entries: [switched("app", { image: "localhost:5000/app:v1", failing: "localhost:5000/app" })],
      pod: podOf([{ name: "app", image: "localhost:5000/app:v1" }]),
      images: { app: `${working}:v1` },
    },
    "annotations that are there stay": {
      pod: podOf([app], { annotations: { team: "a", [decisionAnnotation]: "{}" } }),
      images: { app: `${working}:v1` },
    },
    "environment variables that repeat their name": {
      pod: podOf([{ ...app, env: [1, 2].map(each => ({ name: "TWICE", value: `${each}` })) }]),
      images: { app: `${working}:v1` },
    },
    "all of several labels": {
      entries: [switched("app", { matchLabels: { app: "web", "example.com/part": "front" } })],
      pod: podOf([app], { labels: { app: "web", "example.com/part": "front", more: "yes" } }),
      images: { app: `${working}:v1` },
    },
    "another tag is another image": {
      pod: podOf([{ ...app, image: `${failing}:v2` }]),
      images: { app: `${failing}:v2` },
    },
    "another repository that begins the same": {
      pod: podOf([{ ...app, image: `${failing}-two:v1` }]),
      images: { app: `${failing}-two:v1` },
    },
    "a failing repository that is not the image's": {
      entries: [switched("app", { image: `${failing}-two:v1` })],
      pod: podOf([{ ...app, image: `${failing}-two:v1` }]),
      images: { app: `${failing}-two:v1` },
    },
    "part of the labels": {
      entries: [switched("app", { matchLabels: { app: "web", part: "front" } })],
      images: unchanged,
    },
    "other labels": { pod: podOf([app], { labels: { app: "other" } }), images: unchanged },
    "no labels on the pod": { pod: podOf([app], { labels: {} }), images: unchanged },
    "no labels in the status": { entries: [switched("app", { matchLabels: {} })], images: unchanged },
    "an incident without a working repository": {
      entries: [switched("app", { working: undefined })],
      images: unchanged,
    },
    "no incident": { entries: [{ ...switched("app"), incident: undefined }], images: unchanged },
    "a repository that the spec does not name": {
      entries: [switched("app", { working: "evil.example.com/team/app" })],
      images: unchanged,
    },
    "a repository that the spec disables": { spec: { policy: { disabledRepositories: [working] } }, images: unchanged },
    "a pod that asks by a label to be left alone": {
      pod: podOf([app], { labels: { app: "web", "autoimagemanager.io/skip": "true" } }),
      images: unchanged,
    },
    "a pod that asks by an annotation to be left alone": {
      pod: podOf([app], { annotations: { "autoimagemanager.io/skip": "true" } }),
      images: unchanged,
    },
    "the mirror of a static pod": {
      pod: podOf([app], { annotations: { "kubernetes.io/config.mirror": "7" } }, { nodeName: "nowhere" }),
      images: unchanged,
    },
    "an image that is never pulled": { pod: podOf([{ ...app, imagePullPolicy: "Never" }]), images: unchanged },
  }

  test.each(Object.entries(cases))(
    "%s",
    async (_, { entries = [switched("app")], spec, pod = podOf([app]), images }) => {
      const namespace = await uniqueNamespace()
      const marker = await createSource(namespace, source("marker"))
      const name = await createSource(namespace, source("web", spec))
      await floor().api.patch(`${sourcesPath(namespace, name)}/status`, { status: { targetsAvailable: entries } })
      // Written after the other, and so seen after it.
      await writeStatus(namespace, marker, [])
      const stored = await created(namespace, pod)
      expect(imagesOf(stored)).toEqual(images)
      const { annotations = {} } = pod.metadata
      if (Object.keys(images).every(each => !images[each]!.startsWith(working)))
        expect(stored.metadata.annotations ?? {}).toEqual(annotations)
      else expect(Object.keys(stored.metadata.annotations)).toEqual(expect.arrayContaining(Object.keys(annotations)))
    },
  )

  test("the pod can say why", async () => {
    const namespace = await uniqueNamespace()
    const name = await createSource(namespace, source("web"))
    const entries = [switched("app"), switched("log", { image: `${failing}:log` })]
    await writeStatus(namespace, name, entries)
    const { metadata } = await created(namespace, podOf([app, { name: "log", image: `${failing}:log` }]))
    expect(parseDecision(metadata.annotations[decisionAnnotation])).toEqual({
      from: `${failing}:v1`,
      was: { app: `${failing}:v1`, log: `${failing}:log` },
      to: `${working}:v1`,
      reason: "Unreachable",
      operation: "incident-2026-01-31T12:00:00Z",
      by: "alternateimagesource/web",
      at: parseInstant("2026-01-31T12:00:20Z"),
    })

    // As long as no switch is recorded, the time of the incident counts.
    await writeStatus(
      namespace,
      name,
      entries.map(({ switches: _, ...rest }) => rest),
    )
    const early = parseDecision((await created(namespace, podOf([app]))).metadata.annotations[decisionAnnotation])
    expect(early).toMatchObject({ reason: "Switched", at: parseInstant("2026-01-31T12:00:00Z") })
  })

  test("pods of a Deployment, and not the Deployment; and none in another namespace", async () => {
    const [here, there] = [await uniqueNamespace(), await uniqueNamespace()]
    const name = await createSource(here, source("web"))
    await writeStatus(here, name, [switched("app")])
    const labels = { app: "web" }
    const { spec } = podOf([app])
    const deployment = {
      metadata: { name: "web" },
      spec: { replicas: 2, selector: { matchLabels: labels }, template: { metadata: { labels }, spec } },
    }
    for (const namespace of [here, there]) await floor().api.create(deploymentsPath(namespace), deployment)
    const podsIn = (namespace: string) =>
      until("two pods", async () => {
        const { items } = await floor().api.get(podsPath(namespace))
        return items.length === 2 && items
      })
    for (const pod of await podsIn(here)) expect(imagesOf(pod)).toEqual({ app: `${working}:v1` })
    for (const pod of await podsIn(there)) {
      expect(imagesOf(pod)).toEqual(unchanged)
      expect(pod.metadata.annotations?.[decisionAnnotation]).toBeUndefined()
    }
    const { spec: now } = await floor().api.get(`${deploymentsPath(here)}/web`)
    expect(now.template.spec.containers[0].image).toBe(app.image)

    // It is over: pods are again what their workload says.
    await writeStatus(here, name, [{ ...switched("app"), incident: undefined }])
    expect(imagesOf(await created(here, podOf([app])))).toEqual(unchanged)
  })

  test("several AlternateImageSources: a container is changed once, and what the others say stands", async () => {
    const namespace = await uniqueNamespace()
    const elsewhere = "other.example.com/team/app"
    const replacements = [{ equivalentRepositories: [failing, working, elsewhere] }]
    const names = ["first", "second", "third"]
    for (const name of names) await createSource(namespace, source(name, { imageSourceReplacements: replacements }))
    const log = { name: "log", image: `${failing}:log` }
    await writeStatus(namespace, "first", [switched("app")])
    await writeStatus(namespace, "second", [switched("app", { working: elsewhere })])
    await writeStatus(namespace, "third", [switched("log", { image: log.image })])
    const images = imagesOf(await created(namespace, podOf([app, log])))
    expect(images.log).toBe(`${working}:log`)
    expect([`${working}:v1`, `${elsewhere}:v1`]).toContain(images.app)
  })

  test("a pod is created as it was asked for without an AlternateImageSource, and with one that has no status", async () => {
    const namespace = await uniqueNamespace()
    expect(imagesOf(await created(namespace, podOf([app])))).toEqual(unchanged)
    await createSource(namespace, source("web"))
    expect(imagesOf(await created(namespace, podOf([app])))).toEqual(unchanged)
  })

  test("30 containers in a status of the largest size", async () => {
    const namespace = await uniqueNamespace()
    const name = await createSource(namespace, source("web"))
    const labels = Object.fromEntries(
      Array.from({ length: 8 }, (_, i) => [`example.com/${"l".repeat(10)}-${i}`, "v".repeat(10)]),
    )
    // Names and images differ in their last characters only, so that every comparison goes to the end.
    const nth = (i: number) => ({
      name: `${"c".repeat(56)}-${i}`,
      image: `${failing}:${"t".repeat(60)}-${i}`,
    })
    const entries = Array.from({ length: maxTargetsAvailable - 1 }, (_, i) => ({
      ...switched(nth(i).name, { image: nth(i).image, matchLabels: labels }),
      switches: [],
    }))
    await writeStatus(namespace, name, entries)
    const containers = Array.from({ length: 30 }, (_, i) => nth(maxTargetsAvailable - 2 - i))
    const pod = await created(namespace, podOf(containers, { labels }))
    for (const { name, image } of containers) expect(imagesOf(pod)[name]).toBe(image.replace(failing, working))
    const decision = parseDecision(pod.metadata.annotations[decisionAnnotation])
    expect(Object.keys(decision?.was ?? {})).toHaveLength(16)
  })

  test("what the policy cannot afford or evaluate costs the pod nothing", async () => {
    const namespace = await uniqueNamespace()
    const name = await createSource(namespace, source("web"))
    const entries = Array.from({ length: maxTargetsAvailable - 1 }, () => ({ ...switched("app"), switches: [] }))
    await writeStatus(namespace, name, entries)
    const containers = Array.from({ length: 1000 }, (_, i) => ({ name: i === 0 ? "app" : `c-${i}`, image: app.image }))
    const pod = await created(namespace, podOf(containers), { dryRun: true })
    expect(new Set(Object.values(imagesOf(pod)))).toEqual(new Set([app.image]))
    expect(imagesOf(await created(namespace, podOf([app])))).toEqual({ app: `${working}:v1` })
  })
})

const deploymentsPath = (namespace: string) => `/apis/apps/v1/namespaces/${namespace}/deployments`
