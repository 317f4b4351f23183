import { crdOf } from "#api/crd.ts"
import { Canary, type CanarySpecInput } from "#api/v1alpha1/canary/index.ts"
import { policyManifests } from "#cli/manifests/policies.ts"
import type { Json } from "#cluster-sim/index.ts"
import { canaryController } from "#controllers/canary/controller.ts"
import { canaries, daemonSets, deployments, pods, replicaSets, statefulSets } from "#controllers/canary/resources.ts"
import { ownerOf } from "#core/canary/before.ts"
import type { RouteObject, Router } from "#core/canary/router.ts"
import type { HookAnswer } from "#core/canary/sight.ts"
import type { Check } from "#core/canary/tally.ts"
import { canaryHold } from "#policies/canary-hold.ts"
import { canarySnapshots } from "#policies/canary-snapshots.ts"
import type { Resource } from "#runtime/resource.ts"
import { host, type PullStory, type PullStoryOptions, pullStory } from "./pull-story.ts"
import type { Process, ProcessOptions } from "./scenario.ts"

/** A Deployment, or another workload, of three pods with a Canary, on three nodes. */
export type CanaryStory = Omit<PullStory, "until"> & {
  run(options?: ProcessOptions): Process
  canary(): Promise<Json>
  deployment(): Promise<Json>
  /** The target, whatever its kind. */
  workload(): Promise<Json>
  pods(): Promise<Json[]>
  sets(): Promise<Json[]>
  /** As `kubectl set image` does. */
  setImage(image: string): Promise<void>
  /** As `kubectl delete canary`, which does not wait here. */
  remove(): Promise<void>
  until(phase: string, within?: string): Promise<Json>
  /** The weights that the route ever had, in order. */
  weights(): number[]
  /** What metrics and hooks answer from now on; without checks every metric is good. */
  says: { checks: readonly Check[]; hook: boolean }
  /** Each call of a hook by a process, once: `TYPE NAME`, in order. */
  calls(): string[]
}

export const v1 = `${host}/web:1`
export const v2 = `${host}/web:2`
export const v3 = `${host}/web:3`

/** A route that is two numbers in an object, and is accepted as soon as it is written. */
const plainRouter: Router = {
  providers: ["kubernetes"],
  kind: { group: "", version: "v1", kind: "ConfigMap", plural: "configmaps" },
  nameOf: ({ services }) => services.apex,
  problemsOf: () => [],
  routed: ({ canary, services }, existing, { weight, isMirrored }) =>
    ({
      ...(existing ?? {
        apiVersion: "v1",
        kind: "ConfigMap",
        metadata: { name: services.apex, namespace: canary.metadata.namespace, ownerReferences: [ownerOf(canary)] },
      }),
      data: { weight: String(weight), isMirrored: String(isMirrored) },
    }) as unknown as RouteObject,
  splitIn(_, existing) {
    const { data } = existing as unknown as Json
    return data?.weight === undefined
      ? undefined
      : { weight: Number(data.weight), isMirrored: data.isMirrored === "true" }
  },
  isAccepted: () => ({ ok: true }),
  restored: () => undefined,
}

const kinds = { Deployment: deployments, StatefulSet: statefulSets, DaemonSet: daemonSets }

export type CanaryOptions = {
  kind?: keyof typeof kinds
  /** `updateStrategy` of a StatefulSet or DaemonSet, and other fields of its spec. */
  workload?: Json
  replicas?: number
  spec?: Partial<CanarySpecInput>
  seed?: number
  lags?: PullStoryOptions["lags"]
  isAlone?: boolean
  annotations?: Record<string, string>
  /** Fields of the pods of its template. */
  pod?: Json
  /** Fields of its container. */
  container?: Json
  /** Objects that are there before. */
  objects?: Json[]
  /** The policies hold a change in its owner's own write, and let new pods read snapshots. */
  hasPolicy?: boolean
  /** What autoscalers measure. */
  measure?: PullStoryOptions["measure"]
}

const analysis = { interval: "1m", threshold: 2, stepWeights: [34, 67] }

export async function canaryStory(options: CanaryOptions = {}): Promise<CanaryStory> {
  const { replicas = 3, spec = {}, seed = 1, isAlone = false, kind = "Deployment" } = options
  const story = await pullStory({
    nodes: kind === "DaemonSet" ? replicas : 3,
    seed,
    measure: options.measure,
    ...(options.lags && { lags: options.lags }),
  })
  const { world } = story
  for (const [index, image] of [v1, v2, v3].entries()) story.push(image, { version: "x".repeat(index) })
  await world.apply(...(options.objects ?? []))
  await world.apply(crdOf(Canary) as Json, manifestOf(kind, replicas, options))
  if (options.hasPolicy)
    await world.apply(...([canaryHold, canarySnapshots].flatMap(each => policyManifests(each)) as Json[]))
  const of = async (resource: Resource) =>
    (await world.list(resource)).sort((a, b) => (a.metadata.name < b.metadata.name ? -1 : 1))
  const inTime = async (promise: Promise<unknown>) => {
    let isDone = false
    const done = promise.finally(() => {
      isDone = true
    })
    await world.until("the write is answered", () => isDone, "1m")
    await done
  }
  const says: CanaryStory["says"] = { checks: [], hook: true }
  const calls = new Map<string, string>()
  let processes = 0
  const told: CanaryStory = {
    ...story,
    says,
    calls: () => [...calls.values()],
    run: given =>
      world.run(
        [
          canaryController({
            routerOf: () => plainRouter,
            measuring: () => ({
              checksOf: ({ metrics }) =>
                says.checks.length > 0
                  ? says.checks
                  : metrics.map(({ name }) => ({ name, verdict: "Good", value: 100 })),
            }),
            hooks: () => {
              const process = ++processes
              return {
                answerOf({ runId, hook, round }): HookAnswer {
                  const name = `${hook.type} ${hook.name}`
                  calls.set(`${process} ${runId} ${name} ${round}`, name)
                  return { yes: says.hook, why: "it says so", at: world.clock.now() }
                },
              }
            },
          }),
        ],
        given,
      ),
    canary: () => world.get(canaries, "web", "default"),
    deployment: () => world.get(deployments, "web", "default"),
    workload: () => world.get(kinds[kind], "web", "default"),
    pods: () => of(pods),
    sets: () => of(replicaSets),
    async setImage(image) {
      const body = { spec: { template: { spec: { containers: [{ name: "web", image }] } } } }
      await inTime(
        world.client.patch(
          kinds[kind],
          { name: "web", namespace: "default" },
          { type: "strategic", body },
          { fieldManager: "kubectl-set" },
        ),
      )
    },
    async remove() {
      const { uid } = (await told.canary()).metadata
      await inTime(world.client.delete(canaries, { name: "web", namespace: "default" }, { uid }))
    },
    async until(phase, within = "30m") {
      const isSo = async () => (await told.canary()).status?.phase === phase
      await world.until(`the Canary is ${phase}`, isSo, within).catch(async error => {
        const { status } = await told.canary()
        throw new Error(`${error.message}; it is ${JSON.stringify({ ...status, history: status?.history?.length })}`)
      })
      return told.canary()
    },
    weights() {
      const all = world.history.flatMap(({ object }) =>
        object.kind === "ConfigMap" && object.metadata.name === "web" ? [Number(object.data?.weight)] : [],
      )
      return all.filter((weight, index) => weight !== all[index - 1])
    },
  }
  const isReady = async () => {
    const { availableReplicas, numberAvailable } = (await told.workload()).status ?? {}
    return (availableReplicas ?? numberAvailable ?? 0) === replicas
  }
  await world.until("all pods are ready", isReady, "5m")
  await world.apply(canaryManifest(kind, spec, options.annotations))
  if (!isAlone) told.run()
  return told
}

const canaryManifest = (kind: string, spec: Partial<CanarySpecInput>, annotations?: Record<string, string>): Json => ({
  apiVersion: "autoimagemanager.io/v1alpha1",
  kind: "Canary",
  metadata: { name: "web", namespace: "default", ...(annotations && { annotations }) },
  spec: {
    targetRef: { apiVersion: "apps/v1", kind, name: "web" } as CanarySpecInput["targetRef"],
    // The route of the stories takes any weight.
    provider: "gatewayapi:v1",
    service: { port: 80, gatewayRefs: [{ name: "gateway" }] },
    analysis,
    ...spec,
  },
})

const manifestOf = (kind: string, replicas: number, { workload, pod, container }: CanaryOptions): Json => ({
  apiVersion: "apps/v1",
  kind,
  metadata: { name: "web", namespace: "default" },
  spec: {
    ...(kind !== "DaemonSet" && { replicas }),
    ...(kind === "StatefulSet" && { serviceName: "peers" }),
    ...workload,
    selector: { matchLabels: { app: "web" } },
    template: {
      metadata: { labels: { app: "web" } },
      spec: { ...pod, containers: [{ name: "web", image: v1, ...container }] },
    },
  },
})

export const uidsOf = (all: readonly Json[]): string[] => all.map(({ metadata }) => metadata.uid as string).sort()
