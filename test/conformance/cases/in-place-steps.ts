import type { Json, Script } from "../harness/script.ts"
import { workload } from "./views.ts"
import { done, isReady } from "./workload-steps.ts"

/** The steps of an update in place, as a controller beside the native ones writes them. */

export const [first, second, third] = ["registry.test/app:1", "registry.test/app:2", "registry.test/app:3"] as const

/** A template with this image, and the hold, in one write. */
export const holdWith = (image: string, hold: Json): Json => ({
  spec: { ...hold, template: { spec: { containers: [{ name: "app", image }] } } },
})

const living = async (on: Script): Promise<Json[]> =>
  (await on.quietly.list("pods")).items.filter(({ metadata }: Json) => !metadata.deletionTimestamp)

export const uidsOf = async (on: Script): Promise<string[]> => (await living(on)).map(({ metadata }) => metadata.uid)

/** Whether every pod of before is there still, and how many came. */
export async function comparePods(on: Script, before: readonly string[]): Promise<void> {
  const now = await uidsOf(on)
  on.note("of the pods", {
    stayed: before.filter(uid => now.includes(uid)).length,
    came: now.filter(uid => !before.includes(uid)).length,
  })
}

/** The pods of kwok have no containers, and never show another image than their first. */
const runsItsImage = ({ spec, status }: Json): boolean =>
  (status.containerStatuses ?? []).every(
    ({ name, image, containerID }: Json) =>
      containerID === undefined || image === spec.containers.find((each: Json) => each.name === name).image,
  )

type Change = { labels?: Json; of?: (pod: Json) => boolean }

/** Changes the image of pods and waits until they are ready with it; only then do they get their labels. */
export async function changePods(on: Script, image: string, { labels, of = () => true }: Change = {}): Promise<void> {
  const chosen = (await living(on)).filter(of)
  for (const { metadata, spec } of chosen)
    await on.quietly.patch("pods", metadata.name, "json", [
      { op: "test", path: "/metadata/uid", value: metadata.uid },
      { op: "test", path: "/spec/containers/0/name", value: "app" },
      { op: "test", path: "/spec/containers/0/image", value: spec.containers[0].image },
      { op: "replace", path: "/spec/containers/0/image", value: image },
    ])
  for (const { metadata } of chosen)
    await on.untilObject(
      "pods",
      metadata.name,
      pod => pod.spec.containers[0].image === image && runsItsImage(pod) && isReady(pod),
    )
  if (labels) await labelPods(on, labels, of)
}

export async function labelPods(on: Script, labels: Json, of: (pod: Json) => boolean = () => true): Promise<void> {
  for (const { metadata } of (await living(on)).filter(of))
    await on.quietly.patch("pods", metadata.name, "merge", { metadata: { labels } })
}

/** The native controller has seen the hold. */
export const isHeld = ({ metadata, status }: Json): boolean =>
  status.observedGeneration === metadata.generation &&
  status.conditions.some(({ reason }: Json) => reason === "DeploymentPaused")

/** Holds a Deployment with another image, in one write. */
export async function hold(on: Script, image: string): Promise<Json> {
  await on.quietly.patch("deployments", "web", "strategic", holdWith(image, { paused: true }))
  return held(on)
}

/** Held, with all its pods and none of them updated. */
export const held = (on: Script): Promise<Json> =>
  on.untilObject(
    "deployments",
    "web",
    object =>
      isHeld(object) &&
      (object.status.availableReplicas ?? 0) === object.spec.replicas &&
      (object.status.replicas ?? 0) === object.spec.replicas &&
      !object.status.updatedReplicas,
  )

export const tellHeld = async (on: Script): Promise<void> => on.note("held", workload(await held(on)))

/** The one ReplicaSet that has pods, or had them. */
export const active = async (on: Script): Promise<Json> => {
  const { items } = await on.quietly.list("replicasets")
  return items.find(({ spec }: Json) => spec.replicas > 0) ?? items[0]
}

/** Changes the image in the template of the ReplicaSet, so that new pods have it. */
export async function flip(on: Script, image: string): Promise<void> {
  const { metadata, spec } = await active(on)
  const path = "/spec/template/spec/containers/0/image"
  await on.quietly.patch("replicasets", metadata.name, "json", [
    { op: "test", path, value: spec.template.spec.containers[0].image },
    { op: "replace", path, value: image },
  ])
}

/** Both controllers have seen the new template. */
export async function fence(on: Script): Promise<Json> {
  const { metadata } = await active(on)
  await on.untilObject(
    "replicasets",
    metadata.name,
    object => object.status.observedGeneration === object.metadata.generation,
  )
  return on.untilObject(
    "deployments",
    "web",
    object =>
      isHeld(object) &&
      object.status.updatedReplicas === object.spec.replicas &&
      object.status.availableReplicas === object.spec.replicas,
  )
}

export const release = (on: Script, image: string): Promise<Json> =>
  on.quietly.patch("deployments", "web", "json", [
    { op: "test", path: "/spec/template/spec/containers/0/image", value: image },
    { op: "replace", path: "/spec/paused", value: false },
  ])

/** A whole update in place. Returns the uids of the pods. */
export async function updateInPlace(on: Script, image: string): Promise<string[]> {
  const before = await uidsOf(on)
  await hold(on, image)
  await changePods(on, image)
  await flip(on, image)
  await fence(on)
  await release(on, image)
  await done(on)
  return before
}

/** The ReplicaSet that keeps a template for the history. Its name comes after those that the controller invents. */
export async function keepHistory(on: Script): Promise<void> {
  const { metadata, spec } = await active(on)
  const labels = { app: "web", "pod-template-hash": "zz" }
  await on.quietly.create("replicasets", {
    apiVersion: "apps/v1",
    kind: "ReplicaSet",
    metadata: {
      name: "web-zz",
      labels,
      annotations: {
        "deployment.kubernetes.io/revision": metadata.annotations["deployment.kubernetes.io/revision"],
      },
      ownerReferences: metadata.ownerReferences,
    },
    spec: {
      replicas: 0,
      selector: { matchLabels: labels },
      template: { ...spec.template, metadata: { ...spec.template.metadata, labels } },
    },
  })
}
