import { onRealNode } from "../../support/floor.ts"
import { type Json, type Script, topic } from "../harness/script.ts"
import { changePods, comparePods, first, holdWith, labelPods, second, third, uidsOf } from "./in-place-steps.ts"
import { daemonSet, deployment, statefulSet, change as withFields } from "./objects.ts"
import { pods } from "./views.ts"
import { agents, agentsDone, isReady, nowhere, set, setDone, setImage, setRolled, tellSet } from "./workload-steps.ts"

const revision = "controller-revision-hash"
const everyOrdinal = 2_147_483_647
const partition = (number: number): Json => ({ updateStrategy: { rollingUpdate: { partition: number } } })
const onDelete: Json = { updateStrategy: { type: "OnDelete", rollingUpdate: null } }
const rolling: Json = { updateStrategy: { type: "RollingUpdate" } }

async function started(on: Script, fields: Json = {}): Promise<string[]> {
  await on.quietly.create("statefulsets", set(fields))
  await on.untilObject("statefulsets", "db", setRolled)
  return uidsOf(on)
}

/** Held with another image: the controller has made the revision of it. Returns that. */
async function holdSet(on: Script, image: string, by: Json = partition(everyOrdinal)): Promise<string> {
  await on.quietly.patch("statefulsets", "db", "strategic", holdWith(image, by))
  const { status } = await on.untilObject(
    "statefulsets",
    "db",
    object => setDone(object) && object.status.updateRevision !== object.status.currentRevision,
  )
  return status.updateRevision
}

const updated = (count: number) => (object: Json) =>
  setDone(object) && (object.status.updatedReplicas ?? 0) === count && isCounted(object)

/** A count of pods, and not yet the revision that they are of, may be what was written first. */
const isCounted = ({ spec, status }: Json) =>
  status.updatedReplicas !== spec.replicas ||
  status.currentRevision === status.updateRevision ||
  spec.updateStrategy.type === "OnDelete"

const change = (on: Script, spec: Json): Promise<Json> => on.quietly.patch("statefulsets", "db", "merge", { spec })

const lose = async (on: Script, name: string) => {
  const { metadata } = await on.quietly.get("pods", name)
  await on.quietly.remove("pods", name)
  await on.untilObject("pods", name, object => object && object.metadata.uid !== metadata.uid && isReady(object))
}

const named = (name: string) => (pod: Json) => pod.metadata.name === name

const statefulSets = topic(
  "in place, statefulsets",
  "controllers",
  {
    "held by its partition: a new revision, and no pod goes": async on => {
      const before = await started(on)
      await holdSet(on, second)
      await tellSet(on, updated(0))
      await comparePods(on, before)
    },
    "pods changed and labelled, then released": async on => {
      const before = await started(on)
      const update = await holdSet(on, second)
      await changePods(on, second)
      await tellSet(on, updated(0))
      await labelPods(on, { [revision]: update })
      await tellSet(on, updated(3))
      await change(on, partition(0))
      await tellSet(on)
      await comparePods(on, before)
    },
    "the last pod labelled: the others are of the current revision": async on => {
      const before = await started(on)
      const update = await holdSet(on, second)
      await changePods(on, second, { labels: { [revision]: update }, of: named("db-2") })
      await tellSet(on, updated(1))
      await comparePods(on, before)
    },
    "scaled up while held: the old image": async on => {
      const before = await started(on, { "spec.replicas": 2 })
      const update = await holdSet(on, second)
      await changePods(on, second, { labels: { [revision]: update }, of: named("db-1") })
      await on.quietly.patch("statefulsets/scale", "db", "merge", { spec: { replicas: 3 } })
      await tellSet(on, updated(1))
      await changePods(on, second, { labels: { [revision]: update } })
      await on.untilObject("statefulsets", "db", updated(3))
      await change(on, partition(0))
      await tellSet(on)
      await comparePods(on, before)
    },
    "scaled up once every pod is labelled: the new image": async on => {
      const before = await started(on, { "spec.replicas": 2 })
      const update = await holdSet(on, second)
      await changePods(on, second, { labels: { [revision]: update } })
      await on.untilObject("statefulsets", "db", updated(2))
      await on.quietly.patch("statefulsets/scale", "db", "merge", { spec: { replicas: 3 } })
      await tellSet(on, updated(3))
      await comparePods(on, before)
    },
    "a pod is lost while held: the old image": async on => {
      await started(on)
      const update = await holdSet(on, second)
      await changePods(on, second, { labels: { [revision]: update }, of: named("db-2") })
      await on.untilObject("statefulsets", "db", updated(1))
      await lose(on, "db-2")
      // While the lost pod goes, it counts as available and is of no revision.
      await tellSet(on, object => updated(0)(object) && object.status.currentReplicas === 3)
    },
    "back in place: the revision of before has the next number": async on => {
      const before = await started(on, { "spec.replicas": 2 })
      for (const image of [second, first]) {
        const update = await holdSet(on, image)
        await changePods(on, image, { labels: { [revision]: update } })
        await on.untilObject("statefulsets", "db", updated(2))
        await change(on, partition(0))
        await tellSet(on)
      }
      await comparePods(on, before)
    },
    "the template of before is written back while held: nothing happens": async on => {
      const before = await started(on, { "spec.replicas": 2 })
      await holdSet(on, second)
      await on.quietly.patch("statefulsets", "db", "strategic", setImage(first))
      await on.untilObject("statefulsets", "db", setRolled)
      await change(on, partition(0))
      await tellSet(on)
      await comparePods(on, before)
    },
    "a third image while held: labels of the second do not count": async on => {
      const before = await started(on, { "spec.replicas": 2 })
      const update = await holdSet(on, second)
      await changePods(on, second, { labels: { [revision]: update }, of: named("db-1") })
      await on.untilObject("statefulsets", "db", updated(1))
      await holdSet(on, third)
      await tellSet(on, updated(0))
      await comparePods(on, before)
    },
    "held by OnDelete: a lost pod and a new one have the new image": async on => {
      const before = await started(on, { "spec.replicas": 2 })
      await holdSet(on, second, onDelete)
      await tellSet(on, updated(0))
      await comparePods(on, before)
      await lose(on, "db-1")
      await on.quietly.patch("statefulsets/scale", "db", "merge", { spec: { replicas: 3 } })
      await tellSet(on, updated(2))
    },
    "held by OnDelete: the current revision stays until the type is restored": async on => {
      const before = await started(on, { "spec.replicas": 2 })
      const update = await holdSet(on, second, onDelete)
      await changePods(on, second, { labels: { [revision]: update } })
      await tellSet(on, updated(2))
      await change(on, rolling)
      await tellSet(on)
      await comparePods(on, before)
    },
    "released without labels: every pod is made anew": async on => {
      const before = await started(on, { "spec.replicas": 2 })
      await holdSet(on, second)
      await changePods(on, second)
      await change(on, partition(0))
      await tellSet(on)
      await comparePods(on, before)
    },
    "released with one label missing: that pod is made anew": async on => {
      const before = await started(on, { "spec.replicas": 2 })
      const update = await holdSet(on, second)
      await changePods(on, second)
      await labelPods(on, { [revision]: update }, named("db-1"))
      await on.untilObject("statefulsets", "db", updated(1))
      await change(on, partition(0))
      await tellSet(on)
      await comparePods(on, before)
    },
    "a label that is no revision's": async on => {
      const before = await started(on, { "spec.replicas": 2 })
      await labelPods(on, { [revision]: "db-other" }, named("db-0"))
      await on.untilObject(
        "pods",
        "db-0",
        object =>
          object && !before.includes(object.metadata.uid) && !object.metadata.deletionTimestamp && isReady(object),
      )
      await tellSet(on)
      await comparePods(on, before)
    },
    "a pod on a broken image is repaired without deleting it": async on => {
      const image = (tag: string) => `${on.registry}/web:${tag}`
      await on.quietly.create(
        "statefulsets",
        statefulSet("db", {
          "spec.replicas": 1,
          "spec.template.spec": { ...onRealNode, containers: [{ name: "app", image: image("none") }] },
        }),
      )
      const isStuck = ({ status }: Json) => status.containerStatuses?.[0].state.waiting?.reason === "ImagePullBackOff"
      const { metadata } = await on.untilObject("pods", "db-0", object => object && isStuck(object))
      // Without the hold the controller deletes the pod as soon as it is ready: its label is the old one still.
      await on.quietly.patch("statefulsets", "db", "strategic", holdWith(image("1"), partition(everyOrdinal)))
      const { status } = await on.untilObject(
        "statefulsets",
        "db",
        object => object.status.updateRevision !== object.status.currentRevision,
      )
      await on.quietly.patch("pods", "db-0", "strategic", {
        spec: { containers: [{ name: "app", image: image("1") }] },
      })
      const ready = await on.untilObject("pods", "db-0", isReady)
      on.note("the same pod", ready.metadata.uid === metadata.uid)
      await labelPods(on, { [revision]: status.updateRevision })
      await on.untilObject("statefulsets", "db", updated(1))
      await change(on, partition(0))
      await tellSet(on)
      await comparePods(on, [metadata.uid])
    },
    "what kubectl says of a held statefulset": async on => {
      await started(on, { "spec.replicas": 2 })
      await holdSet(on, second)
      await on.kubectl(["rollout", "status", "statefulset/db", "--watch=false"])
      await change(on, onDelete)
      await on.untilObject("statefulsets", "db", setDone)
      await on.kubectl(["rollout", "status", "statefulset/db", "--watch=false"])
      await on.kubectl(["get", "statefulset", "db"])
      await on.kubectl(["rollout", "history", "statefulset/db"])
    },
  },
  { withManagedFields: false, runsPods: true },
)

const generation = "pod-template-generation"
const ready = (count: number) => (object: Json) =>
  agentsDone(object) && (object.status.updatedNumberScheduled ?? 0) === count

async function agentsStarted(on: Script): Promise<string[]> {
  await on.quietly.create("daemonsets", agents())
  await on.untilObject("daemonsets", "agent", ready(3))
  return uidsOf(on)
}

/** Held with another image. Returns the labels of pods that are up to date. */
async function holdAgents(on: Script, image: string): Promise<{ hash: Json; number: Json }> {
  await on.quietly.patch("daemonsets", "agent", "strategic", holdWith(image, onDelete))
  const { metadata } = await on.untilObject("daemonsets", "agent", ready(0))
  const { items } = await on.quietly.list("controllerrevisions")
  const newest = items.sort((a: Json, b: Json) => b.revision - a.revision)[0]
  return {
    hash: { [revision]: newest.metadata.labels[revision] },
    number: { [generation]: metadata.annotations["deprecated.daemonset.template.generation"] },
  }
}

async function tellAgents(on: Script, wanted: (object: Json) => boolean) {
  const { spec, status } = await on.untilObject("daemonsets", "agent", wanted)
  on.note("daemonset", { strategy: spec.updateStrategy, status })
  on.note("pods", await pods(on))
  const { items } = await on.quietly.list("controllerrevisions")
  on.note(
    "revisions",
    items
      .map(({ metadata, revision }: Json) => ({ labels: metadata.labels, revision }))
      .sort((a: Json, b: Json) => a.revision - b.revision),
  )
}

const releaseAgents = (on: Script): Promise<Json> => on.quietly.patch("daemonsets", "agent", "merge", { spec: rolling })

const daemonSets = topic(
  "in place, daemonsets",
  "controllers",
  {
    "held by OnDelete: a new revision, and no pod goes": async on => {
      const before = await agentsStarted(on)
      await holdAgents(on, second)
      await tellAgents(on, ready(0))
      await comparePods(on, before)
    },
    "pods changed and labelled, then released": async on => {
      const before = await agentsStarted(on)
      const { hash, number } = await holdAgents(on, second)
      await changePods(on, second, { labels: { ...hash, ...number } })
      await tellAgents(on, ready(3))
      await releaseAgents(on)
      await tellAgents(on, ready(3))
      await comparePods(on, before)
    },
    "the hash is label enough": async on => {
      const before = await agentsStarted(on)
      const { hash } = await holdAgents(on, second)
      await changePods(on, second, { labels: hash })
      await on.untilObject("daemonsets", "agent", ready(3))
      await releaseAgents(on)
      await tellAgents(on, ready(3))
      await comparePods(on, before)
    },
    "so is the generation of the template": async on => {
      const before = await agentsStarted(on)
      const { number } = await holdAgents(on, second)
      await changePods(on, second, { labels: number })
      await on.untilObject("daemonsets", "agent", ready(3))
      await releaseAgents(on)
      await tellAgents(on, ready(3))
      await comparePods(on, before)
    },
    "released without labels: every pod is made anew": async on => {
      const before = await agentsStarted(on)
      await holdAgents(on, second)
      await changePods(on, second)
      await releaseAgents(on)
      await tellAgents(on, ready(3))
      await comparePods(on, before)
    },
    "a pod is lost while held: the new image": async on => {
      const before = await agentsStarted(on)
      await holdAgents(on, second)
      const [lost] = (await on.quietly.list("pods")).items
      await on.quietly.remove("pods", lost.metadata.name)
      await tellAgents(on, ready(1))
      await comparePods(on, before)
    },
    "the template of before is written back while held: nothing happens": async on => {
      const before = await agentsStarted(on)
      await holdAgents(on, second)
      await on.quietly.patch("daemonsets", "agent", "strategic", setImage(first))
      await on.untilObject("daemonsets", "agent", ready(3))
      await releaseAgents(on)
      await tellAgents(on, ready(3))
      await comparePods(on, before)
    },
    "what kubectl says of a held daemonset": async on => {
      await agentsStarted(on)
      await holdAgents(on, second)
      await on.kubectl(["rollout", "status", "daemonset/agent", "--watch=false"])
      await on.kubectl(["rollout", "history", "daemonset/agent"])
      await on.kubectl(["get", "daemonset", "agent"])
    },
  },
  { withManagedFields: false, runsPods: true },
)

/** Workloads without pods: what of a hold is left when their manifests are applied again. */
const applied: Record<string, { manifest: Json; hold: Json; left: (spec: Json) => Json }> = {
  deployments: { manifest: deployment("web"), hold: { paused: true }, left: ({ paused }) => paused },
  statefulsets: {
    manifest: statefulSet("web"),
    hold: partition(everyOrdinal),
    left: ({ updateStrategy }) => updateStrategy,
  },
  daemonsets: {
    manifest: daemonSet("web", { "spec.template.spec.nodeSelector": nowhere.nodeSelector }),
    hold: onDelete,
    left: ({ updateStrategy }) => updateStrategy,
  },
}

const holds = topic(
  "in place, holds",
  "registry",
  Object.fromEntries(
    Object.entries(applied).map(([resource, { manifest, hold, left }]) => [
      `${resource}: applied again by the client, then on the server`,
      async (on: Script) => {
        const file = (image: string) =>
          on.file("web.yaml", withFields(manifest, { "spec.template.spec.containers.0.image": image }))
        const tellHold = async (what: string) => on.note(what, left((await on.quietly.get(resource, "web")).spec))
        await on.kubectl(["apply", "-f", file(first)])
        await on.quietly.patch(resource, "web", "merge", { spec: hold })
        await tellHold("held")
        await on.kubectl(["apply", "-f", file(second)])
        await tellHold("applied by the client")
        await on.kubectl(["apply", "--server-side", "--force-conflicts", "-f", file(third)])
        await tellHold("applied on the server")
        await on.quietly.patch(resource, "web", "merge", { spec: hold })
        await on.kubectl(["apply", "--server-side", "--force-conflicts", "-f", file(first)])
        await tellHold("held and applied on the server again")
      },
    ]),
  ),
)

export const inPlaceOfSets = [...statefulSets, ...daemonSets, ...holds]
