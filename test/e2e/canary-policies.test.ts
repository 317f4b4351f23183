import { mkdtempSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from "vitest"
import { crdOf } from "#api/crd.ts"
import { AlertProvider } from "#api/v1alpha1/alertprovider/index.ts"
import { approvedAnnotation, approvedByAnnotation } from "#api/v1alpha1/canary/annotations.ts"
import { Canary } from "#api/v1alpha1/canary/index.ts"
import { MetricTemplate } from "#api/v1alpha1/metrictemplate/index.ts"
import { policyManifests } from "#cli/manifests/policies.ts"
import { canaryHolder } from "#core/canary/hold.ts"
import { heldMark } from "#core/in-place/names.ts"
import { policies } from "#policies/all.ts"
import { ask } from "#test/support/ask.ts"
import { installKind } from "#test/support/fleet.ts"
import {
  type Access,
  endAtOnce,
  floor,
  type Json,
  onKwok,
  type Rules,
  serviceAccountAccess,
  uniqueNamespace,
  until,
} from "#test/support/floor.ts"

// The policies about Canaries on a real server: whatever writes the target of a Canary, its change is held, and an author
// gets no more done through a Canary than the author may do without one.

const tried = policies.filter(({ name }) => /^aim-(canary|metrictemplate|alertprovider|in-place-hold)/.test(name))
const manifests = tried.flatMap(policyManifests) as Json[]
const pathOf = ({ kind, metadata }: Json) =>
  `/apis/admissionregistration.k8s.io/v1/${kind.toLowerCase().replace(/y$/, "ie")}s/${metadata.name}`

beforeAll(async () => {
  for (const kind of [Canary, MetricTemplate, AlertProvider]) await installKind(crdOf(kind))
  for (const manifest of manifests) await floor().api.apply(pathOf(manifest), manifest)
})
afterAll(async () => {
  for (const manifest of manifests.toReversed()) await floor().api.remove(pathOf(manifest))
})

test("the server finds nothing wrong with the expressions and the types they meet", async () => {
  const validating = manifests.filter(({ kind }) => kind === "ValidatingAdmissionPolicy")
  expect(validating.length).toBe(4)
  for (const manifest of validating) {
    const { status } = await until(`${manifest.metadata.name} to be checked`, async () => {
      const policy = await floor().api.get(pathOf(manifest))
      return policy.status?.observedGeneration === policy.metadata.generation && policy
    })
    expect(status.typeChecking, manifest.metadata.name).toEqual({})
  }
})

const canariesPath = (namespace: string) => `/apis/${Canary.apiVersion}/namespaces/${namespace}/${Canary.plural}`
const canary = (spec: Json = {}): Json => ({
  apiVersion: Canary.apiVersion,
  kind: Canary.kind,
  metadata: { name: "web" },
  spec: {
    targetRef: { apiVersion: "apps/v1", kind: "Deployment", name: "web" },
    service: { port: 80 },
    analysis: { interval: "1m", threshold: 5, stepWeight: 10 },
    ...spec,
  },
})

describe("the hold", () => {
  /** A Deployment that was made by `kubectl apply`, with pods that are ready and a Canary that has adopted it. */
  async function begin({ how = [], phase = "Initialized" }: { how?: string[]; phase?: string } = {}) {
    const { api, kubectlRun } = floor()
    const namespace = await uniqueNamespace()
    const folder = mkdtempSync(join(tmpdir(), "aim-canary-"))
    onTestFinished(() => rmSync(folder, { recursive: true, force: true }))
    const file = join(folder, "manifest.json")
    const kubectl = (...args: string[]) => kubectlRun("-n", namespace, ...args)
    const manifest = (image: string): Json => ({
      apiVersion: "apps/v1",
      kind: "Deployment",
      metadata: { name: "web" },
      spec: {
        replicas: 2,
        selector: { matchLabels: { app: "web" } },
        template: {
          metadata: { labels: { app: "web" } },
          spec: { ...onKwok, ...endAtOnce, containers: [{ name: "web", image }] },
        },
      },
    })
    const of = (object: Json) => {
      writeFileSync(file, JSON.stringify(object))
      return file
    }
    const path = `/apis/apps/v1/namespaces/${namespace}/deployments/web`
    const here = {
      kubectl,
      get: (): Promise<Json> => api.get(path),
      setPhase: (next: string) =>
        api.patch(`${canariesPath(namespace)}/web/status`, { status: { phase: next, canaryWeight: 0 } }),
      setImage: (image: string, ...more: string[]) => kubectl("set", "image", "deploy/web", `web=${image}`, ...more),
      apply: (image: string, ...how: string[]) => kubectl("apply", ...how, "-f", of(manifest(image))),
      replace: (image: string) => kubectl("replace", "-f", of(manifest(image))),
      async uids(): Promise<string[]> {
        const { items } = await api.get(`/api/v1/namespaces/${namespace}/pods?labelSelector=app=web`)
        return items.map(({ metadata }: Json) => metadata.uid).sort()
      },
      isInForce: async () => (await here.setImage("web:9", "--dry-run=server", "-o", "json")).includes(heldMark),
    }
    await here.apply("web:1", ...how)
    await api.create(canariesPath(namespace), canary())
    await until("all pods are ready", async () => (await here.get()).status?.readyReplicas === 2)
    await here.setPhase("Initialized")
    await until("the policy is in force", here.isInForce)
    if (phase !== "Initialized") await here.setPhase(phase)
    return here
  }
  type Here = Awaited<ReturnType<typeof begin>>

  const seen = (here: Here) =>
    until("its controller has seen it", async () => {
      const object = await here.get()
      return object.status.observedGeneration === object.metadata.generation && object
    })

  const marksOf = ({ metadata, spec }: Json) =>
    [spec.paused, metadata.labels?.[heldMark], metadata.annotations?.[heldMark]].filter(mark => mark !== undefined)

  async function expectHeld(here: Here, image: string, uids: string[]) {
    const { metadata, spec } = await seen(here)
    expect(spec.template.spec.containers[0].image).toBe(image)
    expect(spec.paused).toBe(true)
    expect(metadata.labels).toMatchObject({ [heldMark]: canaryHolder })
    expect(JSON.parse(metadata.annotations[heldMark])).toMatchObject({ by: canaryHolder, name: "web" })
    expect(await here.uids()).toEqual(uids)
  }

  const stories: Record<string, { how?: string[]; writes: ((here: Here, image: string) => Promise<unknown>)[] }> = {
    "kubectl set image": { writes: [(here, image) => here.setImage(image), (here, image) => here.setImage(image)] },
    "client-side applies": { writes: [(here, image) => here.apply(image), (here, image) => here.apply(image)] },
    "server-side applies": {
      how: ["--server-side"],
      writes: [
        (here, image) => here.apply(image, "--server-side"),
        (here, image) => here.apply(image, "--server-side"),
      ],
    },
    "kubectl replace, which takes marks and pause with it": {
      writes: [(here, image) => here.setImage(image), (here, image) => here.replace(image)],
    },
  }
  for (const [name, { how = [], writes }] of Object.entries(stories))
    test(name, async () => {
      const here = await begin({ how })
      const uids = await here.uids()
      for (const [index, write] of writes.entries()) {
        await write(here, `web:${index + 2}`)
        await expectHeld(here, `web:${index + 2}`, uids)
      }
    })

  test("a write that changes no template is not held", async () => {
    const here = await begin()
    await here.kubectl("scale", "deploy/web", "--replicas=3")
    await here.kubectl("annotate", "deploy/web", "note=1")
    expect(marksOf(await here.get())).toEqual([])
  })

  test("a release is let through, mark by mark, and the change is rolled out", async () => {
    const here = await begin()
    const uids = await here.uids()
    await here.setImage("web:2")
    await expectHeld(here, "web:2", uids)
    const patch = (body: Json) => here.kubectl("patch", "deploy/web", "--type=merge", "-p", JSON.stringify(body))
    await patch({ metadata: { annotations: { [heldMark]: null } }, spec: { paused: null } })
    await patch({ metadata: { labels: { [heldMark]: null } } })
    await here.kubectl("rollout", "status", "deploy/web", "--timeout=60s")
    expect(marksOf(await here.get())).toEqual([])
    await until("the old pods are gone", async () => !(await here.uids()).some(uid => uids.includes(uid)))
  })

  test("a Canary that has not adopted its target, or is going, holds nothing", async () => {
    const here = await begin({ phase: "Terminating" })
    await until("the server has seen the phase", async () => !(await here.isInForce()))
    await here.setImage("web:2")
    expect((await here.get()).spec.paused).toBeUndefined()
    await here.setPhase("Initializing")
    // While it adopts, the controller asks by a dry run.
    await until("the server has seen the phase", here.isInForce)
    await here.setImage("web:3")
    expect((await here.get()).spec.paused).toBeUndefined()
  })
})

describe("snapshots", () => {
  const suffix = "0123456789abcdef"
  const running = { workload: "web", hash: "5d9c7", snapshots: { settings: suffix } }
  const owner = (fields: Json = {}): Json => ({
    ...{ apiVersion: "apps/v1", kind: "ReplicaSet", name: "web-5d9c7", uid: "u1", controller: true },
    ...fields,
  })
  const pod = (labels: Json, ...ownerReferences: Json[]): Json => ({
    apiVersion: "v1",
    kind: "Pod",
    metadata: { generateName: "web-", labels, ownerReferences },
    spec: {
      volumes: [
        { name: "plain", configMap: { name: "settings" } },
        { name: "both", projected: { sources: [{ secret: { name: "key" } }, { configMap: { name: "settings" } }] } },
        { name: "secret", secret: { secretName: "settings" } },
      ],
      initContainers: [{ name: "first", image: "web:1", envFrom: [{ configMapRef: { name: "settings" } }] }],
      containers: [
        {
          name: "web",
          image: "web:1",
          env: [
            { name: "A", value: "plain" },
            { name: "B", valueFrom: { configMapKeyRef: { name: "settings", key: "b" } } },
            { name: "C", valueFrom: { secretKeyRef: { name: "settings", key: "c" } } },
          ],
        },
        { name: "side", image: "side:1", envFrom: [{ configMapRef: { name: "other" } }] },
      ],
    },
  })
  const namesIn = ({ spec }: Json) => [
    spec.volumes[0].configMap.name,
    spec.volumes[1].projected.sources[1].configMap.name,
    spec.volumes[2].secret.secretName,
    spec.initContainers[0].envFrom[0].configMapRef.name,
    spec.containers[0].env[1].valueFrom.configMapKeyRef.name,
    spec.containers[0].env[2].valueFrom.secretKeyRef.name,
    spec.containers[1].envFrom[0].configMapRef.name,
  ]
  const read = (name: string) => [name, name, "settings", name, name, "settings", "other"]

  async function begin(kind = "Deployment") {
    const { api } = floor()
    const namespace = await uniqueNamespace()
    await api.create(canariesPath(namespace), canary({ targetRef: { apiVersion: "apps/v1", kind, name: "web" } }))
    const made = async (object: Json, at = namespace) => {
      const { status, body } = await ask("POST", `/api/v1/namespaces/${at}/pods?dryRun=All`, object)
      expect(status, body.message).toBe(201)
      return namesIn(body)
    }
    const record = (...configs: Json[]) =>
      api.patch(`${canariesPath(namespace)}/web/status`, { status: { phase: "Initialized", canaryWeight: 0, configs } })
    return { made, record }
  }

  test("a new pod of a revision reads them wherever it names the ConfigMap, and no other pod does", async () => {
    const { made, record } = await begin()
    const trial = { workload: "web-0a1b2c3d4e", snapshots: { settings: suffix } }
    await record(running, trial)
    const hash = { "pod-template-hash": "5d9c7" }
    const isInForce = async () => (await made(pod(hash, owner())))[0] === `settings-${suffix}`
    await until("the policy is in force", isInForce)
    expect(await made(pod(hash, owner()))).toEqual(read(`settings-${suffix}`))
    const ofRun = pod({ "pod-template-hash": "77f" }, owner({ name: "web-0a1b2c3d4e-77f" }))
    expect(await made(ofRun)).toEqual(read(`settings-${suffix}`))
    const others: Record<string, Json> = {
      "another revision": pod({ "pod-template-hash": "77f" }, owner({ name: "web-77f" })),
      "another workload with the same hash": pod(hash, owner({ name: "api-5d9c7" })),
      "a pod of its own": pod(hash),
      "an owner that does not control it": pod(hash, owner({ controller: false })),
      "an owner of another group": pod(hash, owner({ apiVersion: "evil.example.com/v1" })),
      "a pod without the label": pod({}, owner()),
    }
    for (const [name, object] of Object.entries(others)) expect(await made(object), name).toEqual(read("settings"))
    expect(await made(pod(hash, owner()), await uniqueNamespace()), "another namespace").toEqual(read("settings"))
  })

  test("a pod of a StatefulSet reads those of its own revision", async () => {
    const { made, record } = await begin("StatefulSet")
    await record({ workload: "web", hash: "web-5d9c7", snapshots: { settings: suffix } })
    const of = (hash: string) => pod({ "controller-revision-hash": hash }, owner({ kind: "StatefulSet", name: "web" }))
    await until("the policy is in force", async () => (await made(of("web-5d9c7")))[0] === `settings-${suffix}`)
    expect(await made(of("web-5d9c7"))).toEqual(read(`settings-${suffix}`))
    expect(await made(of("web-77f"))).toEqual(read("settings"))
  })
})

describe("the author", () => {
  const own = (plurals: string[]): Rules => [
    { apiGroups: ["autoimagemanager.io"], resources: plurals, verbs: ["create", "get", "update", "patch"] },
  ]
  const writes = own(["canaries", "metrictemplates", "alertproviders"])
  const rule = (group: string, resource: string, verbs: string[]): Rules => [
    { apiGroups: [group], resources: [resource], verbs },
  ]
  const patches = [...rule("apps", "deployments", ["patch"]), ...rule("", "services", ["patch"])]
  const routes = rule("gateway.networking.k8s.io", "httproutes", ["patch"])
  const secrets = rule("", "secrets", ["get"])

  const hooked = canary({
    analysis: {
      interval: "1m",
      threshold: 5,
      stepWeight: 10,
      webhooks: [{ name: "signed", url: "http://gate.example.com/", secretRef: { name: "key" } }],
    },
  })
  const gateway = canary({ provider: "gatewayapi:v1", service: { port: 80, gatewayRefs: [{ name: "public" }] } })
  const approved = (by: string): Json => ({
    ...canary(),
    metadata: { name: "web", annotations: { [approvedAnnotation]: "r1", [approvedByAnnotation]: by } },
  })
  const template: Json = {
    apiVersion: MetricTemplate.apiVersion,
    kind: MetricTemplate.kind,
    metadata: { name: "t" },
    spec: {
      provider: { type: "prometheus", address: "http://mine.example.com", secretRef: { name: "theirs" } },
      query: "up",
    },
  }
  const provider: Json = {
    apiVersion: AlertProvider.apiVersion,
    kind: AlertProvider.kind,
    metadata: { name: "p" },
    spec: { type: "slack", secretRef: { name: "theirs" } },
  }

  const attempts: Record<string, { rules: Rules; object: Json; refused?: string }> = {
    "a Canary without the right to patch anything": {
      rules: writes,
      object: canary(),
      refused: "deployments.apps patched, and you may not patch them in namespace",
    },
    "a Canary without the right to patch Services": {
      rules: [...writes, ...rule("apps", "deployments", ["patch"])],
      object: canary(),
      refused: "services patched, and you may not patch them in namespace",
    },
    "a Canary by an author that may patch its kind and Services": { rules: [...writes, ...patches], object: canary() },
    "a gateway without the right to patch routes": {
      rules: [...writes, ...patches],
      object: gateway,
      refused: "httproutes.gateway.networking.k8s.io patched, and you may not patch them in namespace",
    },
    "a gateway with that right": { rules: [...writes, ...patches, ...routes], object: gateway },
    "a hook signed with a Secret that the author may not get": {
      rules: [...writes, ...patches],
      object: hooked,
      refused: "signed with a Secret, and you may not get secrets",
    },
    "a hook signed with one that the author may get": { rules: [...writes, ...patches, ...secrets], object: hooked },
    "an approval in another's name": {
      rules: [...writes, ...patches],
      object: approved("anna"),
      refused: "an approval carries the name of the user that writes it",
    },
    "a MetricTemplate that sends a foreign Secret": {
      rules: writes,
      object: template,
      refused: "sends Secret theirs to its address, and you may not get it",
    },
    "a MetricTemplate with a Secret of the author's": { rules: [...writes, ...secrets], object: template },
    "an AlertProvider that sends a foreign Secret": {
      rules: writes,
      object: provider,
      refused: "sends Secret theirs to its address, and you may not get it",
    },
    "an AlertProvider with a Secret of the author's": { rules: [...writes, ...secrets], object: provider },
  }

  test("gets no more done than the author may do", async () => {
    const namespace = await uniqueNamespace()
    const accounts: [string, Access, (typeof attempts)[string]][] = []
    for (const [index, [name, attempt]] of Object.entries(attempts).entries())
      accounts.push([name, await serviceAccountAccess(namespace, `a-${index}`, attempt.rules), attempt])
    const plurals: Record<string, string> = {
      Canary: Canary.plural,
      MetricTemplate: MetricTemplate.plural,
      AlertProvider: AlertProvider.plural,
    }
    for (const [name, access, { object, refused }] of accounts) {
      const path = `/apis/${object.apiVersion}/namespaces/${namespace}/${plurals[object.kind]}?dryRun=All`
      // Roles and policies come into force by watches of the server's own.
      const isAsWanted = ({ status, body }: Awaited<ReturnType<typeof ask>>) =>
        refused ? status === 403 && body.message.includes(refused) : status === 201
      let last: unknown
      await until(`${name}: ${refused ? "refused" : "accepted"}`, async () => {
        const answer = await ask("POST", path, object, { access })
        last = answer.body.message
        return isAsWanted(answer)
      }).catch(error => {
        throw new Error(`${error.message}; the server said ${last}`)
      })
    }
  })
})
