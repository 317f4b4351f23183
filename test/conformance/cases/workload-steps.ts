import { onKwok } from "../../support/floor.ts"
import type { Json, Script } from "../harness/script.ts"
import { daemonSet, deployment, statefulSet } from "./objects.ts"
import { pods, replicaSets, workload } from "./views.ts"

/**
 * Pods that become ready at once, on the nodes that kwok plays, and go at once: kwok was seen to leave one Terminating
 * for minutes when the machine was busy, and no answer of a workload is about how long that takes.
 */
const quick = {
  "spec.template.spec.nodeSelector": onKwok.nodeSelector,
  "spec.template.spec.tolerations": onKwok.tolerations,
  "spec.template.spec.terminationGracePeriodSeconds": 0,
}
export const nowhere = { nodeSelector: { type: "nowhere" } }

export const web = (fields: Json = {}) => deployment("web", { "spec.replicas": 3, ...quick, ...fields })
export const setImage = (image: string) => ({ spec: { template: { spec: { containers: [{ name: "app", image }] } } } })

const isDone = ({ metadata, spec, status }: Json) =>
  status.observedGeneration === metadata.generation &&
  status.updatedReplicas === (spec.replicas || undefined) &&
  status.replicas === (spec.replicas || undefined) &&
  status.availableReplicas === (spec.replicas || undefined) &&
  !status.terminatingReplicas &&
  (spec.paused ||
    status.conditions.some(({ type, reason }: Json) => type === "Progressing" && reason === "NewReplicaSetAvailable"))

export async function done(on: Script, name = "web"): Promise<Json> {
  // Right after a change the conditions still speak of the replica set before.
  const isAboutTheNewest = async ({ spec, status }: Json) => {
    const { name: newest } = (await replicaSets(on)).at(-1)
    return (
      spec.paused ||
      status.conditions.some(({ type, message }: Json) => type === "Progressing" && message.includes(newest))
    )
  }
  return on.until("it is rolled out", async () => {
    const object = await on.untilObject("deployments", name, isDone)
    const { items } = await on.quietly.list("pods")
    const sets = (await on.quietly.list("replicasets")).items
    return (
      (await isAboutTheNewest(object)) &&
      items.length === (object.spec.replicas ?? 0) &&
      items.every(isReady) &&
      sets.every(isSettled) &&
      object
    )
  })
}

export const isReady = ({ status }: Json) =>
  status.conditions?.some(({ type, status }: Json) => type === "Ready" && status === "True")

/**
 * A deployment goes on saying that it is done until it has heard that one of its pods is gone, and one without pods
 * says so before its replica set has been looked at.
 */
const isSettled = ({ metadata, spec, status }: Json) =>
  status.observedGeneration === metadata.generation &&
  (status.replicas ?? 0) === spec.replicas &&
  (status.availableReplicas ?? 0) === spec.replicas &&
  !status.terminatingReplicas

export async function tell(on: Script, name = "web") {
  on.note("deployment", workload(await done(on, name)))
  on.note("replica sets", await replicaSets(on))
  on.note("pods", await pods(on))
}

export const set = (fields: Json = {}) => statefulSet("db", { "spec.replicas": 3, ...quick, ...fields })
export const setDone = ({ metadata, spec, status }: Json) =>
  status.observedGeneration === metadata.generation &&
  status.availableReplicas === spec.replicas &&
  status.replicas === spec.replicas
export const setRolled = (object: Json) =>
  setDone(object) &&
  object.status.updatedReplicas === object.spec.replicas &&
  object.status.currentRevision === object.status.updateRevision

export async function tellSet(on: Script, wanted: (object: Json) => unknown = setRolled) {
  const { status } = await on.untilObject("statefulsets", "db", wanted)
  on.note("statefulset", status)
  on.note("pods", await pods(on))
  const { items } = await on.quietly.list("controllerrevisions")
  on.note(
    "revisions",
    items
      .map(({ metadata, revision }: Json) => ({ name: metadata.name, labels: metadata.labels, revision }))
      .sort((a: Json, b: Json) => a.revision - b.revision),
  )
}

export const agents = (fields: Json = {}) => daemonSet("agent", { ...quick, ...fields })
export const agentsDone = ({ metadata, status }: Json) =>
  status.observedGeneration === metadata.generation &&
  status.desiredNumberScheduled === 3 &&
  status.numberAvailable === 3
