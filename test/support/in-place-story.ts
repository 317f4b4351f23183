import { usualLimits } from "#agent/index.ts"
import { createRecreateController } from "#agent/recreate/controller.ts"
import { crdOf } from "#api/crd.ts"
import { ContainerRecreateRequest } from "#api/v1alpha1/containerrecreaterequest/index.ts"
import { policies } from "#cli/manifests/policies.ts"
import type { Json } from "#cluster-sim/index.ts"
import { createContainerRecreateRequestController } from "#controllers/containerrecreaterequest/controller.ts"
import { createInPlaceController } from "#controllers/in-place/controller.ts"
import { deployments, imagePullJobs, pods, replicaSets } from "#controllers/in-place/resources.ts"
import { grantName } from "#core/grant.ts"
import { parseNote, type WorkloadNote } from "#core/in-place/marks.ts"
import { heldMark, inPlaceAnnotation, strategyAnnotation } from "#core/in-place/names.ts"
import { host, type PullStory, type PullStoryOptions, pullStory } from "./pull-story.ts"
import type { Process, ProcessOptions } from "./scenario.ts"

/** A Deployment of two containers that has opted in, on three nodes with agents. */
export type InPlaceStory = PullStory & {
  /** Runs the controller of updates, as a process of its own. */
  update(options?: ProcessOptions): Process
  deployment(): Promise<Json>
  pods(): Promise<Json[]>
  sets(): Promise<Json[]>
  jobs(): Promise<Json[]>
  note(): Promise<WorkloadNote | undefined>
  /** As `kubectl set image` does. */
  setImage(images: Readonly<Record<string, string>>): Promise<void>
  patch(body: Json): Promise<void>
  /** Waits until the update stands so. */
  says(reason: string, within?: string): Promise<WorkloadNote>
  /** Waits until the Deployment is no longer held. */
  free(within?: string): Promise<Json>
}

export type InPlaceOptions = {
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
  const { replicas = 3, annotations = {}, seed = 1, isAlone = false } = options
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
    update: options => world.run([createInPlaceController()], options),
    deployment: () => world.get(deployments, "web", "default"),
    pods: () => of(pods),
    sets: () => of(replicaSets),
    jobs: () => of(imagePullJobs),
    note: async () => parseNote((await told.deployment()).metadata.annotations[inPlaceAnnotation]),
    async setImage(images) {
      const containers = Object.entries(images).map(([name, image]) => ({ name, image }))
      const body = { spec: { template: { spec: { containers } } } }
      const name = { name: "web", namespace: "default" }
      const done = world.client.patch(deployments, name, { type: "strategic", body }, { fieldManager: "kubectl-set" })
      let isDone = false
      done.finally(() => {
        isDone = true
      })
      await world.until("the image is set", () => isDone, "1m")
      await done
    },
    patch: body => world.patch(deployments, "web", body, "default"),
    async says(reason, within = "5m") {
      await world
        .until(`the update says ${reason}`, async () => (await told.note())?.reason === reason, within)
        .catch(async error => {
          throw new Error(`${error.message}; it says ${JSON.stringify(await told.note())}`)
        })
      return (await told.note())!
    },
    async free(within = "10m") {
      const isFree = async () => !isHeld(await told.deployment())
      await world.until("the Deployment is released", isFree, within).catch(async error => {
        throw new Error(`${error.message}; it says ${JSON.stringify(await told.note())}`)
      })
      return told.deployment()
    },
  }
  if (!isAlone) told.update()
  // It sets the gate of new pods, and hands requests to the agents.
  world.run([createContainerRecreateRequestController()])
  for (const name of story.agents.keys()) runRestarts(story, name)
  await world.until("all pods are ready", async () => isRolledOut(await told.deployment()), "5m")
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
export const isRolledOut = ({ metadata, spec, status = {} }: Json) =>
  (status.observedGeneration ?? 0) >= metadata.generation &&
  (status.updatedReplicas ?? 0) === spec.replicas &&
  (status.replicas ?? 0) === spec.replicas &&
  (status.availableReplicas ?? 0) === spec.replicas

const grant = (namespace: string): Json => ({
  apiVersion: "rbac.authorization.k8s.io/v1",
  kind: "RoleBinding",
  metadata: { name: grantName, namespace },
  roleRef: { apiGroup: "rbac.authorization.k8s.io", kind: "ClusterRole", name: grantName },
  subjects: [],
})

function manifestOf(replicas: number, annotations: Record<string, string>, options: InPlaceOptions): Json {
  return {
    apiVersion: "apps/v1",
    kind: "Deployment",
    metadata: {
      name: "web",
      namespace: "default",
      annotations: { ...(!options.hasNotAsked && { [strategyAnnotation]: "InPlaceIfPossible" }), ...annotations },
    },
    spec: {
      replicas,
      selector: { matchLabels: { app: "web" } },
      strategy: { rollingUpdate: { maxUnavailable: 1 } },
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
