import { type Json, type Script, topic } from "../harness/script.ts"
import { comparePods, first, hold, second, uidsOf } from "./in-place-steps.ts"
import { service } from "./objects.ts"
import { replicaSets, workload } from "./views.ts"
import { done, setImage, tell, web } from "./workload-steps.ts"

/** The steps by which a ReplicaSet goes from one Deployment to another, as a controller beside the native ones writes them. */

/** A Deployment of its own for the held template: the same selector, and pods beside those of the first. */
const trialOf = (image: string, fields: Json = {}) => {
  const object = web({ "metadata.name": "web-next", ...fields })
  object.spec.template.spec.containers[0].image = image
  return object
}

const revision = "deployment.kubernetes.io/revision"
const isOf =
  (name: string) =>
  ({ metadata }: Json) =>
    metadata.ownerReferences?.[0]?.name === name

/** Ready with all its pods, whatever other pods the selector finds. */
const isComplete = ({ metadata, spec, status }: Json) =>
  status.observedGeneration === metadata.generation &&
  (status.updatedReplicas ?? 0) === spec.replicas &&
  (status.availableReplicas ?? 0) === spec.replicas &&
  (status.replicas ?? 0) === spec.replicas

const setsOf = async (on: Script, name: string): Promise<Json[]> =>
  (await on.quietly.list("replicasets")).items.filter(isOf(name))

async function startTrial(on: Script, image: string, fields: Json = {}): Promise<Json> {
  await on.quietly.create("deployments", trialOf(image, fields))
  await on.untilObject("deployments", "web-next", isComplete)
  return on.until("its replica set is there", async () => (await setsOf(on, "web-next"))[0])
}

const podsOf = async (on: Script, set: string): Promise<string[]> =>
  (await on.quietly.list("pods")).items
    .filter((pod: Json) => isOf(set)(pod) && !pod.metadata.deletionTimestamp)
    .map(({ metadata }: Json) => metadata.uid)

async function pauseTrial(on: Script): Promise<void> {
  await on.quietly.patch("deployments", "web-next", "merge", { spec: { paused: true } })
  await on.untilObject(
    "deployments",
    "web-next",
    ({ metadata, status }) =>
      status.observedGeneration === metadata.generation &&
      status.conditions.some(({ reason }: Json) => reason === "DeploymentPaused"),
  )
}

async function moveSet(on: Script, { metadata }: Json): Promise<void> {
  const { metadata: user } = await on.quietly.get("deployments", "web")
  const owner = { apiVersion: "apps/v1", kind: "Deployment", name: "web", uid: user.uid }
  await on.quietly.patch("replicasets", metadata.name, "merge", {
    metadata: { ownerReferences: [{ ...owner, controller: true, blockOwnerDeletion: true }] },
  })
}

const revisionOf = ({ metadata }: Json) => Number(metadata.annotations?.[revision])

/**
 * The controller of the first Deployment has counted the ReplicaSet, and wants no pod of any other. The revision must be
 * above that of every other: the one that came along may be equal.
 */
const counted = (on: Script, name: string, size: number) =>
  on.until("it is counted", async () => {
    const sets = await setsOf(on, "web")
    const user = await on.quietly.get("deployments", "web")
    const mine = sets.find(({ metadata }) => metadata.name === name)
    const others = sets.filter(each => each !== mine)
    return (
      mine &&
      revisionOf(mine) === revisionOf(user) &&
      others.every(each => revisionOf(each) < revisionOf(mine) && each.spec.replicas === 0) &&
      (user.status.updatedReplicas ?? 0) === size
    )
  })

async function finish(on: Script): Promise<void> {
  await on.quietly.remove("deployments", "web-next")
  await on.untilObject("deployments", "web-next", object => object === undefined)
  await on.quietly.patch("deployments", "web", "merge", { spec: { paused: false } })
}

/** A held Deployment with the second image, and the Deployment of its trial, ready. */
async function begin(on: Script, size = 2): Promise<{ set: Json; tested: string[] }> {
  await on.quietly.create("deployments", web({ "spec.replicas": size }))
  await done(on)
  if (size > 0) await hold(on, second)
  else await on.quietly.patch("deployments", "web", "strategic", { spec: { paused: true, ...setImage(second).spec } })
  const set = await startTrial(on, second, { "spec.replicas": size })
  return { set, tested: await podsOf(on, set.metadata.name) }
}

export const handOvers = topic(
  "hand-over",
  "controllers",
  {
    "a held deployment takes over a ready replica set, and scales its own to zero": async on => {
      const { set, tested } = await begin(on)
      await pauseTrial(on)
      await moveSet(on, set)
      await counted(on, set.metadata.name, 2)
      await finish(on)
      await tell(on)
      await comparePods(on, tested)
      await on.kubectl(["rollout", "history", "deployment/web"])
    },
    "then back to the first template: it rolls as ever": async on => {
      const { set, tested } = await begin(on)
      await pauseTrial(on)
      await moveSet(on, set)
      await counted(on, set.metadata.name, 2)
      await finish(on)
      await done(on)
      await on.kubectl(["rollout", "undo", "deployment/web"])
      await tell(on)
      await comparePods(on, tested)
    },
    "the deployment of the trial is not paused: it makes another replica set": async on => {
      const { set } = await begin(on)
      await moveSet(on, set)
      await on.until("another is there", async () => (await setsOf(on, "web-next")).length === 1)
      on.note("of the trial", (await setsOf(on, "web-next")).length)
    },
    "without pods: the revision shows that it is counted": async on => {
      const { set } = await begin(on, 0)
      await pauseTrial(on)
      await moveSet(on, set)
      await counted(on, set.metadata.name, 0)
      on.note("counted", workload(await on.quietly.get("deployments", "web")))
      await finish(on)
      await tell(on)
    },
    "of another size: both are resized in proportion, the tested one too": async on => {
      await on.quietly.create("deployments", web({ "spec.replicas": 4 }))
      await done(on)
      await hold(on, second)
      const set = await startTrial(on, second, { "spec.replicas": 2 })
      await pauseTrial(on)
      await moveSet(on, set)
      // Four, and one more by maxSurge: one is resized after the other.
      const sizes = await on.until("they are resized", async () => {
        const wanted: number[] = (await setsOf(on, "web")).map(({ spec }) => spec.replicas).sort()
        return wanted.reduce((sum, each) => sum + each, 0) === 5 && wanted
      })
      on.note("sizes", sizes)
    },
    "an older replica set of the same template is taken for the new one": async on => {
      await on.quietly.create("deployments", web({ "spec.replicas": 2 }))
      await done(on)
      await on.quietly.patch("deployments", "web", "strategic", setImage(second))
      await done(on)
      await on.quietly.patch("deployments", "web", "strategic", setImage(first))
      await done(on)
      await on.quietly.patch("deployments", "web", "strategic", { spec: { paused: true, ...setImage(second).spec } })
      const set = await startTrial(on, second, { "spec.replicas": 2 })
      await pauseTrial(on)
      await moveSet(on, set)
      const [twin] = (await setsOf(on, "web")).filter(
        ({ metadata, spec }) =>
          spec.template.spec.containers[0].image === second && metadata.name !== set.metadata.name,
      )
      on.note(
        "the older one counts",
        await on.until("one of the two counts", async () => {
          const { metadata } = await on.quietly.get("deployments", "web")
          const { metadata: older } = await on.quietly.get("replicasets", twin!.metadata.name)
          return older.annotations[revision] === metadata.annotations[revision]
        }),
      )
    },
    "an older replica set of the same template was deleted before": async on => {
      await on.quietly.create("deployments", web({ "spec.replicas": 2 }))
      await done(on)
      await on.quietly.patch("deployments", "web", "strategic", setImage(second))
      await done(on)
      await on.quietly.patch("deployments", "web", "strategic", setImage(first))
      await done(on)
      await on.quietly.patch("deployments", "web", "strategic", { spec: { paused: true, ...setImage(second).spec } })
      const set = await startTrial(on, second, { "spec.replicas": 2 })
      const tested = await podsOf(on, set.metadata.name)
      const [twin] = (await setsOf(on, "web")).filter(({ spec }) => spec.template.spec.containers[0].image === second)
      await on.quietly.remove("replicasets", twin!.metadata.name)
      await on.untilObject("replicasets", twin!.metadata.name, object => object === undefined)
      await pauseTrial(on)
      await moveSet(on, set)
      await counted(on, set.metadata.name, 2)
      await finish(on)
      await tell(on)
      await comparePods(on, tested)
    },
    "the trial is deleted instead: its pods go, and those of the first stay": async on => {
      await on.quietly.create("deployments", web({ "spec.replicas": 2 }))
      await done(on)
      const before = await uidsOf(on)
      await hold(on, second)
      await startTrial(on, second, { "spec.replicas": 2 })
      await on.quietly.remove("deployments", "web-next")
      await on.until("its pods are gone", async () => (await uidsOf(on)).length === 2)
      await comparePods(on, before)
      await on.quietly.patch("deployments", "web", "strategic", { spec: { paused: false, ...setImage(first).spec } })
      await tell(on)
      await comparePods(on, before)
    },
    "scaled while its trial runs: the first grows with the old template": async on => {
      const { tested } = await begin(on)
      await on.quietly.patch("deployments/scale", "web", "merge", { spec: { replicas: 3 } })
      await on.untilObject("deployments", "web", ({ status }) => status.availableReplicas === 3)
      const sets = await replicaSets(on)
      on.note("sizes", sets.map(({ image, wanted }: Json) => `${image} ${wanted}`).sort())
      await comparePods(on, tested)
    },
    "the pods of a replica set that changes hands keep their owner": async on => {
      const { set, tested } = await begin(on)
      await pauseTrial(on)
      await moveSet(on, set)
      await counted(on, set.metadata.name, 2)
      const pods = (await on.quietly.list("pods")).items.filter(({ metadata }: Json) => tested.includes(metadata.uid))
      on.note(
        "owners",
        pods.map(({ metadata }: Json) => metadata.ownerReferences.map(({ uid }: Json) => uid === set.metadata.uid)),
      )
    },
    "two deployments of one selector leave each other's replica sets alone": async on => {
      await begin(on)
      const sizes = async (name: string) => (await setsOf(on, name)).map(({ spec }) => spec.replicas)
      on.note("of the first", await sizes("web"))
      on.note("of the trial", await sizes("web-next"))
    },
    "a replica set that its deployment left behind is taken by the next one of that template": async on => {
      await on.quietly.create("deployments", web({ "spec.replicas": 2 }))
      await done(on)
      const before = await uidsOf(on)
      await on.quietly.remove("deployments", "web", { propagationPolicy: "Orphan" })
      await on.untilObject("deployments", "web", object => object === undefined)
      await on.quietly.create("deployments", web({ "spec.replicas": 2 }))
      await tell(on)
      await comparePods(on, before)
    },
    "a service by the hash of a replica set has the same endpoints after it changed hands": async on => {
      const { set } = await begin(on)
      const hash = set.metadata.labels["pod-template-hash"]
      await on.quietly.create("services", service("next", { "spec.selector": { "pod-template-hash": hash } }))
      const ready = async () => {
        const { items } = await on.quietly.list("endpointslices")
        const of = items.filter(({ metadata }: Json) => metadata.labels["kubernetes.io/service-name"] === "next")
        return of.flatMap(({ endpoints }: Json) => endpoints ?? []).map(({ targetRef }: Json) => targetRef.uid)
      }
      await on.until("both are endpoints", async () => (await ready()).length === 2)
      const before = (await ready()).sort()
      await pauseTrial(on)
      await moveSet(on, set)
      await counted(on, set.metadata.name, 2)
      await finish(on)
      await done(on)
      on.note("the same", JSON.stringify((await ready()).sort()) === JSON.stringify(before))
    },
  },
  { withManagedFields: false, runsPods: true },
)
