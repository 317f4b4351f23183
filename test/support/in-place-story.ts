import { usualLimits } from "#agent/index.ts"
import { createRecreateController } from "#agent/recreate/controller.ts"
import { crdOf } from "#api/crd.ts"
import { ContainerRecreateRequest } from "#api/v1alpha1/containerrecreaterequest/index.ts"
import { policies } from "#cli/manifests/policies.ts"
import type { Json } from "#cluster-sim/index.ts"
import { createContainerRecreateRequestController } from "#controllers/containerrecreaterequest/controller.ts"
import { createInPlaceController } from "#controllers/in-place/controller.ts"
import {
  daemonSets,
  deployments,
  imagePullJobs,
  pods,
  replicaSets,
  statefulSets,
} from "#controllers/in-place/resources.ts"
import { grantName } from "#core/grant.ts"
import { parseNote, type WorkloadNote } from "#core/in-place/marks.ts"
import { heldMark, inPlaceAnnotation, strategyAnnotation } from "#core/in-place/names.ts"
import { host, type PullStory, type PullStoryOptions, pullStory } from "./pull-story.ts"
import type { Process, ProcessOptions } from "./scenario.ts"

/** A workload of two containers that has opted in, on three nodes with agents. By default a Deployment. */
export type InPlaceStory = PullStory & {
  /** Runs the controller of updates, as a process of its own. */
  update(options?: ProcessOptions): Process
  resource: typeof deployments
  /** The policies, for a story that begins without them. */
  policies: readonly Json[]
  workload(): Promise<Json>
  deployment(): Promise<Json>
  pods(): Promise<Json[]>
  sets(): Promise<Json[]>
  jobs(): Promise<Json[]>
  note(): Promise<WorkloadNote | undefined>
  /** As `kubectl set image` does. */
  setImage(images: Readonly<Record<string, string>>): Promise<void>
  patch(body: Json): Promise<void>
  /** As `kubectl replace` does with the manifest: whatever the manifest does not have is gone. */
  replace(image: string, options?: { hasNotAsked?: boolean }): Promise<void>
  /** Changes the template: a strategic patch. */
  change(template: Json): Promise<void>
  /** Waits until the update stands so. */
  says(reason: string, within?: string): Promise<WorkloadNote>
  /** Waits until the workload is no longer held. */
  free(within?: string): Promise<Json>
}

export type InPlaceKind = "Deployment" | "StatefulSet" | "DaemonSet"

export type InPlaceOptions = {
  kind?: InPlaceKind
  replicas?: number
  annotations?: Record<string, string>
  spec?: Json
  template?: Json
  hasGate?: boolean
  /** As a server before 1.36: nothing holds a write but the writer itself. */
  hasNoPolicies?: boolean
  /** The Deployment does not ask for it itself. */
  hasNotAsked?: boolean
  seed?: number
  lags?: PullStoryOptions["lags"]
  /** Does not start the controller of updates. */
  isAlone?: boolean
}

export const v1 = `${host}/web:1`
export const v2 = `${host}/web:2`
export const v3 = `${host}/web:3`
const side = `${host}/side:1`

export async function inPlaceStory(options: InPlaceOptions = {}): Promise<InPlaceStory> {
  const { kind = "Deployment", replicas = 3, annotations = {}, seed = 1, isAlone = false } = options
  const resource = { Deployment: deployments, StatefulSet: statefulSets, DaemonSet: daemonSets }[kind]
  const story = await pullStory({ nodes: 3, seed, ...(options.lags && { lags: options.lags }) })
  const { world } = story
  for (const [index, image] of [v1, v2, v3, side].entries()) story.push(image, { version: "x".repeat(index) })
  await world.apply(
    crdOf(ContainerRecreateRequest) as Json,
    ...(options.hasNoPolicies ? [] : (policies() as Json[])),
    grant("default"),
    manifestOf(replicas, annotations, options),
  )
  const of = async (resource: Parameters<typeof world.list>[0]) =>
    (await world.list(resource)).sort((a, b) => (a.metadata.name < b.metadata.name ? -1 : 1))
  const told: InPlaceStory = {
    ...story,
    resource,
    policies: policies() as Json[],
    update: options => world.run([createInPlaceController()], options),
    workload: () => world.get(resource, "web", "default"),
    deployment: () => told.workload(),
    pods: () => of(pods),
    sets: () => of(replicaSets),
    jobs: () => of(imagePullJobs),
    note: async () => parseNote((await told.workload()).metadata.annotations[inPlaceAnnotation]),
    async setImage(images) {
      const containers = Object.entries(images).map(([name, image]) => ({ name, image }))
      await told.change({ spec: { containers } })
    },
    async change(template) {
      const body = { spec: { template } }
      const name = { name: "web", namespace: "default" }
      const done = world.client.patch(resource, name, { type: "strategic", body }, { fieldManager: "kubectl-set" })
      let isDone = false
      done.finally(() => {
        isDone = true
      })
      await world.until("the template is changed", () => isDone, "1m")
      await done
    },
    patch: body => world.patch(resource, "web", body, "default"),
    async replace(image, { hasNotAsked = options.hasNotAsked ?? false } = {}) {
      const manifest = manifestOf(replicas, annotations, { ...options, hasNotAsked })
      manifest.spec.template.spec.containers[0].image = image
      const done = world.client.replace(resource, manifest as never, { fieldManager: "kubectl-replace" })
      let isDone = false
      done.finally(() => {
        isDone = true
      })
      await world.until("it is replaced", () => isDone, "1m")
      await done
    },
    async says(reason, within = "5m") {
      await world
        .until(`the update says ${reason}`, async () => (await told.note())?.reason === reason, within)
        .catch(async error => {
          throw new Error(`${error.message}; it says ${JSON.stringify(await told.note())}`)
        })
      return (await told.note())!
    },
    async free(within = "10m") {
      const isFree = async () => !isHeld(await told.workload())
      await world.until("the workload is released", isFree, within).catch(async error => {
        throw new Error(`${error.message}; it says ${JSON.stringify(await told.note())}`)
      })
      return told.workload()
    },
  }
  if (!isAlone) told.update()
  // It sets the gate of new pods, and hands requests to the agents.
  world.run([createContainerRecreateRequestController()])
  for (const name of story.agents.keys()) runRestarts(story, name)
  await world.until("all pods are ready", async () => isRolledOut(await told.workload()), "5m")
  await world.settle("5s")
  return told
}

/** The other half of a node's agent, which restarts containers. */
function runRestarts({ world, runtime }: PullStory, name: string): void {
  const connection = runtime(name).connectMounted()
  const disk = async () => runtime(name).images.disk.statfs()
  const controller = createRecreateController({ node: { name, runtime: connection, disk }, limits: usualLimits })
  world.run([controller], { dies: { onDeath: () => connection.close() } })
}

export const isHeld = ({ metadata }: Json) =>
  metadata.annotations?.[heldMark] !== undefined || metadata.labels?.[heldMark] !== undefined

/** As `kubectl rollout status` decides it. */
export function isRolledOut({ kind, metadata, spec, status = {} }: Json): boolean {
  if ((status.observedGeneration ?? 0) < metadata.generation) return false
  const all = (wanted: number, ...counts: (number | undefined)[]) => counts.every((count = 0) => count === wanted)
  const { desiredNumberScheduled: wanted = 0, updatedNumberScheduled, numberAvailable } = status
  if (kind === "DaemonSet") return wanted > 0 && all(wanted, updatedNumberScheduled, numberAvailable)
  const isComplete = all(spec.replicas, status.updatedReplicas, status.replicas, status.availableReplicas)
  return isComplete && status.currentRevision === status.updateRevision
}

const grant = (namespace: string): Json => ({
  apiVersion: "rbac.authorization.k8s.io/v1",
  kind: "RoleBinding",
  metadata: { name: grantName, namespace },
  roleRef: { apiGroup: "rbac.authorization.k8s.io", kind: "ClusterRole", name: grantName },
  subjects: [],
})

const strategies: Record<InPlaceKind, Json> = {
  Deployment: { strategy: { rollingUpdate: { maxUnavailable: 1 } } },
  StatefulSet: { serviceName: "web" },
  DaemonSet: {},
}

function manifestOf(replicas: number, annotations: Record<string, string>, options: InPlaceOptions): Json {
  const { kind = "Deployment" } = options
  return {
    apiVersion: "apps/v1",
    kind,
    metadata: {
      name: "web",
      namespace: "default",
      annotations: { ...(!options.hasNotAsked && { [strategyAnnotation]: "InPlaceIfPossible" }), ...annotations },
    },
    spec: {
      ...(kind !== "DaemonSet" && { replicas }),
      selector: { matchLabels: { app: "web" } },
      ...strategies[kind],
      ...options.spec,
      template: {
        metadata: { labels: { app: "web" } },
        spec: {
          containers: [
            { name: "web", image: v1 },
            { name: "side", image: side },
          ],
          ...(options.hasGate && { readinessGates: [{ conditionType: "autoimagemanager.io/InPlaceUpdateReady" }] }),
          ...options.template,
        },
      },
    },
  }
}

/** What must not change of a pod: name, uid, address, node and the ID of the container beside. */
export const identity = ({ metadata, spec, status }: Json) => ({
  name: metadata.name,
  uid: metadata.uid,
  ip: status.podIP,
  node: spec.nodeName,
  side: status.containerStatuses.find(({ name }: Json) => name === "side")?.containerID,
})

export const imageOf = ({ spec }: Json, container = "web"): string =>
  spec.containers.find(({ name }: Json) => name === container).image
