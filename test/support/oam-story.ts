import { crdOf } from "#api/crd.ts"
import { Canary, type CanarySpecInput } from "#api/v1alpha1/canary/index.ts"
import type { Json } from "#cluster-sim/index.ts"
import { canaryController } from "#controllers/canary/controller.ts"
import { canaries, deployments, pods, services } from "#controllers/canary/resources.ts"
import { routerOf } from "#core/canary/routers/index.ts"
import type { Check } from "#core/canary/tally.ts"
import type { Resource } from "#runtime/resource.ts"
import type { Process, ProcessOptions } from "./scenario.ts"
import { application, type TrafficStory, type TrafficStoryOptions, trafficStory } from "./traffic.ts"

/**
 * A component of OAM with a Canary as its trait, and a small OAM runtime: a revision of the component becomes a workload
 * of size 0 with its labels, the trait is given the workload, and the runtime writes its own fields again and again.
 */
export type OamStory = TrafficStory & {
  run(options?: ProcessOptions): Process
  /** The author changes the component: its next revision runs this image. Returns the name of its workload. */
  revise(image: string, options?: { labels?: Record<string, string> }): Promise<string>
  /** The author goes back to an earlier revision. */
  backTo(revision: number): Promise<void>
  canary(): Promise<Json>
  workload(revision: number): Promise<Json>
  /** The sizes of all revisions, the first one first. */
  sizes(): Promise<number[]>
  pods(): Promise<Json[]>
  until(phase: string, within?: string): Promise<Json>
  /** So many runs have ended, and none is under way. */
  ended(runs: number): Promise<void>
  weights(): number[]
  remove(): Promise<void>
  delete(revision: number): Promise<void>
  /** As `kubectl scale`; all pods are ready when it returns. */
  resize(revision: number, size: number): Promise<void>
  /** As `kubectl rollout restart`. */
  restart(revision: number): Promise<void>
  /** The ready pods that a Service selects. */
  selected(service: string): Promise<Json[]>
  /** The runtime stops writing, and what it wrote stays. */
  stopRuntime(): void
  /** Its author writes these fields of the trait, and the runtime applies them. */
  change(spec: Partial<CanarySpecInput>): void
  startRuntime(): void
  says: { checks: readonly Check[] }
}

export const image = (version: number) => `registry.example.com/web:${version}`

export type OamOptions = TrafficStoryOptions & {
  spec?: Partial<CanarySpecInput>
  isAlone?: boolean
  /** How many pods the author gives to the first revision, once it runs. */
  size?: number
  /** How often the runtime writes its fields again. */
  appliesEveryMs?: number
  /** As the runtime of 2021 does: what the trait does not have is taken off the Canary, finalizers too. */
  isReplacing?: boolean
  /** Of another kind, each revision has a Deployment through it. */
  kind?: "Deployment" | "PodSpecWorkload" | "ContainerizedWorkload"
}

const good: readonly Check[] = [{ name: "rate", verdict: "Good", value: 100 }]
export const bad: readonly Check[] = [{ name: "rate", verdict: "Bad", value: 1, why: "1 is below 99" }]

export async function oamStory(options: OamOptions = {}): Promise<OamStory> {
  const { spec: asked = {}, isAlone = false, size = 4, kind = "Deployment", ...others } = options
  const { appliesEveryMs = 5000, isReplacing = false, ...rest } = others
  const told = await trafficStory(rest)
  const { world } = told
  await world.apply(crdOf(Canary) as Json)
  const says = { checks: good }
  let spec = asked
  const revisions: Json[] = []
  let current = 0
  let isStopped = false
  /** Each metric that is asked gets the answer that the story has. */
  const checksOf = ({ metrics }: { readonly metrics: readonly { readonly name: string }[] }) =>
    metrics.flatMap(({ name }) => says.checks.map(check => ({ ...check, name })))
  const manager = { fieldManager: "oam-runtime" }

  /** What the runtime has to say of a workload. It names no number of pods. */
  const write = (resource: Resource, body: Json) =>
    world.client.patch(resource, body.metadata, { type: "apply", body, force: true }, manager)
  const trait = (): Json => ({
    apiVersion: "autoimagemanager.io/v1alpha1",
    kind: "Canary",
    metadata: { name: "web", namespace: "default" },
    spec: {
      provider: "oam",
      targetRef: { apiVersion: "apps/v1", kind, name: revisions[current]!.metadata.name },
      service: {
        name: "shop",
        port: 80,
        targetPort: 8080,
        hosts: ["web.example.com"],
        gatewayRefs: [{ name: "gateway", namespace: "default" }],
      },
      analysis: { interval: "1m", threshold: 2, stepWeights: [25, 50], metrics: [{ name: "rate", query: "1" }] },
      ...spec,
    },
  })
  const replace = async (body: Json) => {
    const there = await world.client.get(canaries, body.metadata).catch(() => undefined)
    if (!there) return world.client.create(canaries, body as never)
    const { resourceVersion } = there.metadata
    return world.client.replace(canaries, { ...body, metadata: { ...body.metadata, resourceVersion } } as never)
  }
  const again = async () => {
    if (isStopped || revisions.length === 0) return
    await write(deployments, revisions[current]!).catch(() => {})
    await (isReplacing ? replace(trait()) : write(canaries, trait())).catch(() => {})
  }
  const tick = (): void => {
    world.clock.after(appliesEveryMs, () => {
      void again().then(tick)
    })
  }
  const create = async (body: Json) => {
    const { spec: fields, ...others } = body
    const made = world.client.create(deployments, { ...others, spec: { ...fields, replicas: 0 } } as never)
    await made
    await write(deployments, body)
  }
  const inTime = async (promise: Promise<unknown>) => {
    let isDone = false
    const done = promise.finally(() => {
      isDone = true
    })
    await world.until("the write is answered", () => isDone, "1m")
    await done
  }

  const story: OamStory = {
    ...told,
    says,
    run: given => world.run([canaryController({ routerOf, measuring: () => ({ checksOf }) })], given),
    async revise(name, { labels = {} } = {}) {
      const number = revisions.length + 1
      revisions.push(manifestOf(number, name, kind, labels))
      await inTime(create(revisions[number - 1]!))
      current = number - 1
      await inTime(again())
      return `web-v${number}`
    },
    async backTo(revision) {
      current = revision - 1
      await inTime(again())
    },
    canary: () => world.get(canaries, "web", "default"),
    workload: revision => world.get(deployments, `web-v${revision}`, "default"),
    async sizes() {
      const all = await world.list(deployments)
      return all
        .toSorted((a, b) => (a.metadata.name < b.metadata.name ? -1 : 1))
        .map(({ spec: { replicas } }) => replicas as number)
    },
    pods: async () =>
      (await world.list(pods)).filter(
        ({ metadata, status }) => !metadata.deletionTimestamp && status?.phase !== "Succeeded",
      ),
    async until(phase, within = "30m") {
      const isSo = async () => (await story.canary()).status?.phase === phase
      await world.until(`the Canary is ${phase}`, isSo, within).catch(async error => {
        throw new Error(`${error.message}; it is ${JSON.stringify((await story.canary()).status)}`)
      })
      return story.canary()
    },
    async ended(runs) {
      const isSo = async () => {
        const { run, history } = (await story.canary()).status
        return run === undefined && history.length === runs
      }
      await world.until(`${runs} runs have ended`, isSo, "30m").catch(async error => {
        throw new Error(`${error.message}; it is ${JSON.stringify((await story.canary()).status)}`)
      })
    },
    weights() {
      const all = world.history.flatMap(({ object }) => {
        if (object.kind === "TrafficSplit")
          return [object.spec.backends.find(({ service }: Json) => service === "shop-canary")?.weight ?? 0]
        if (object.kind !== "HTTPRoute") return []
        const backends = object.spec.rules.flatMap(({ backendRefs = [] }: Json) => backendRefs)
        return [backends.findLast(({ name }: Json) => name === "shop-canary")?.weight ?? 0]
      })
      return all.filter((weight, index) => weight !== all[index - 1])
    },
    async remove() {
      isStopped = true
      const { uid } = (await story.canary()).metadata
      await inTime(world.client.delete(canaries, { name: "web", namespace: "default" }, { uid }))
    },
    async delete(revision) {
      const { name, uid } = (await story.workload(revision)).metadata
      await inTime(world.client.delete(deployments, { name, namespace: "default" }, { uid }))
    },
    async resize(revision, replicas) {
      await world.patch(deployments, `web-v${revision}`, { spec: { replicas } }, "default")
      const isReady = async () => (await story.workload(revision)).status?.availableReplicas === replicas
      await world.until("all pods are ready", isReady)
    },
    async restart(revision) {
      const annotations = { "kubectl.kubernetes.io/restartedAt": String(world.clock.now()) }
      await world.patch(
        deployments,
        `web-v${revision}`,
        { spec: { template: { metadata: { annotations } } } },
        "default",
      )
    },
    async selected(service) {
      const {
        spec: { selector },
      } = await world.get(services, service, "default")
      return (await story.pods()).filter(
        ({ metadata, status }) =>
          Object.entries(selector).every(([key, value]) => metadata.labels?.[key] === value) &&
          status?.conditions?.some(({ type, status: is }: Json) => type === "Ready" && is === "True"),
      )
    },
    change(fields) {
      spec = fields
    },
    stopRuntime() {
      isStopped = true
    },
    startRuntime() {
      isStopped = false
    },
  }
  await story.revise(image(1))
  tick()
  if (!isAlone) {
    story.run()
    await story.until("Succeeded")
    await story.resize(1, size)
  }
  return story
}

export const autoscalerOf = (name: string, of: string): Json => ({
  apiVersion: "autoscaling/v2",
  kind: "HorizontalPodAutoscaler",
  metadata: { name, namespace: "default" },
  spec: {
    scaleTargetRef: { apiVersion: "apps/v1", kind: "Deployment", name: of },
    minReplicas: 2,
    maxReplicas: 10,
    metrics: [{ type: "Resource", resource: { name: "cpu", target: { type: "Utilization", averageUtilization: 80 } } }],
  },
})

/** The workload of a revision as the runtime renders it. */
function manifestOf(number: number, version: string, kind: string, labels: Record<string, string>): Json {
  const name = `web-v${number}`
  const { spec, ...rest } = application("web", { image: version })
  const { replicas: _, ...fields } = spec
  const owner = { apiVersion: "standard.oam.dev/v1alpha1", kind, name, uid: `uid-of-${name}`, controller: true }
  return {
    ...rest,
    metadata: {
      name,
      namespace: "default",
      labels: { "app.oam.dev/component": "web", "app.oam.dev/revision": name },
      ...(kind !== "Deployment" && { ownerReferences: [owner] }),
    },
    spec: { ...fields, template: { ...fields.template, metadata: { labels: { app: "web", ...labels } } } },
  }
}
