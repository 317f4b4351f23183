import { selects } from "#lib/label-selector.ts"
import type { Json, Obj } from "../../object.ts"
import { StatusError } from "../../status-error.ts"
import { createRecorder } from "../recorder.ts"
import type { Part, PhysicsWorld } from "../world.ts"
import { withCondition } from "./conditions.ts"
import { hasDeadline, progressing, revisionKey } from "./deployment-facts.ts"
import { plan } from "./deployment-plan.ts"
import type { Action } from "./deployment-status.ts"
import { keyOf, loop, nameOf, servedKind } from "./loop.ts"
import { adoptersAmong, claim, manager, ownedIndex, ownersToWake, tolerateAbsence } from "./owned.ts"
import { controllerOf, isTerminal } from "./pods.ts"
import { isNamespaceTerminating } from "./refusals.ts"
import { same } from "./same.ts"

/** Rolls ReplicaSets. Reads Deployments, ReplicaSets and Pods; writes ReplicaSets and the status of Deployments. */
export function deploymentController(world: PhysicsWorld): Part {
  const { storage, clock } = world
  const deployments = servedKind(storage, "apps/v1", "Deployment")
  const replicaSetKind = servedKind(storage, "apps/v1", "ReplicaSet")
  const owned = ownedIndex(storage, "apps/v1", "ReplicaSet", "Deployment")
  const pods = ownedIndex(storage, "v1", "Pod", "ReplicaSet")
  const record = createRecorder(world, "deployment-controller")

  const adopters = adoptersAmong(storage, deployments)

  /** A Deployment with the strategy Recreate waits for the end of its old pods. */
  function* deploymentOfPod(pod: Obj) {
    const owner = controllerOf(pod)
    if (owner?.kind !== "ReplicaSet") return
    const replicaSet = storage.find(replicaSetKind, { namespace: pod.metadata.namespace, name: owner.name })
    const deployment = replicaSet && controllerOf(replicaSet)
    if (deployment?.kind === "Deployment") yield `${pod.metadata.namespace}/${deployment.name}`
  }

  function writeStatus(deployment: Obj, status: Json, revision?: string) {
    const { metadata } = deployment
    const annotations = { ...metadata.annotations, ...(revision !== undefined && { [revisionKey]: revision }) }
    const object = { ...deployment, metadata: { ...metadata, annotations }, status }
    storage.update(deployments, object, { ...manager, subresource: "status" })
  }

  function apply(deployment: Obj, action: Action) {
    switch (action.do) {
      case "status":
        writeStatus(deployment, action.status, action.revision)
        break
      case "update":
        storage.update(replicaSetKind, action.replicaSet, manager)
        break
      case "delete":
        tolerateAbsence(() => storage.delete(replicaSetKind, action.replicaSet.metadata))
        break
      case "scale": {
        const { replicaSet, from, to } = action
        // One reconcile may scale a ReplicaSet twice: the second write needs the version of the first.
        const current = storage.get(replicaSetKind, replicaSet.metadata)
        const { resourceVersion } = current.metadata
        storage.update(
          replicaSetKind,
          { ...replicaSet, metadata: { ...replicaSet.metadata, resourceVersion } },
          manager,
        )
        if (from !== to) {
          const direction = from < to ? "up" : "down"
          const { name } = replicaSet.metadata
          const message = `Scaled ${direction} replica set ${name} from ${from} to ${to}`
          record(deployment, "Normal", "ScalingReplicaSet", message)
        }
        break
      }
      case "create":
        create(deployment, action.replicaSet)
    }
  }

  function create(deployment: Obj, replicaSet: Json) {
    const { name } = replicaSet.metadata
    try {
      storage.create(replicaSetKind, replicaSet, manager)
    } catch (error) {
      if (!(error instanceof StatusError) || isNamespaceTerminating(error)) throw error
      const status = deployment.status ?? {}
      if (error.reason === "AlreadyExists") {
        // A ReplicaSet of ours would have been found, so this is a hash collision.
        writeStatus(deployment, { ...status, collisionCount: (status.collisionCount ?? 0) + 1 })
        throw error
      }
      const message = `Failed to create new replica set "${name}": ${error.message}`
      if (hasDeadline(deployment)) {
        const condition = progressing(clock.now(), "False", "ReplicaSetCreateError", message)
        const conditions = withCondition(status.conditions ?? [], condition)
        if (!same(conditions, status.conditions)) writeStatus(deployment, { ...status, conditions })
      }
      record(deployment, "Warning", "ReplicaSetCreateError", message)
      throw error
    }
    if (replicaSet.spec.replicas > 0) {
      const message = `Scaled up replica set ${name} from 0 to ${replicaSet.spec.replicas}`
      record(deployment, "Normal", "ScalingReplicaSet", message)
    }
  }

  return loop(world, {
    name: "deployment-controller",
    begin() {
      const stops = [owned.begin(), pods.begin()]
      return () => stops.forEach(stop => void stop())
    },
    watches: [
      { apiVersion: "apps/v1", kind: "Deployment", keys: ({ object }) => [keyOf(object)] },
      { apiVersion: "apps/v1", kind: "ReplicaSet", keys: change => ownersToWake(change, "Deployment", adopters) },
      {
        apiVersion: "v1",
        kind: "Pod",
        keys: ({ type, object }) => (type === "DELETED" ? deploymentOfPod(object) : []),
      },
    ],
    reconcile(key) {
      const deployment = storage.find(deployments, nameOf(key))
      if (!deployment) return undefined
      const { selector } = deployment.spec
      const replicaSets = claim({ storage, kind: replicaSetKind, owner: deployment, owned }, replicaSet =>
        selects(selector, replicaSet.metadata.labels),
      )
      const next = plan({
        deployment,
        replicaSets,
        now: clock.now(),
        hasPodsBeside: newest =>
          replicaSets.some(replicaSet => replicaSet !== newest && pods.of(replicaSet).some(pod => !isTerminal(pod))),
      })
      try {
        for (const action of next.actions) apply(deployment, action)
      } catch (error) {
        if (error instanceof StatusError && isNamespaceTerminating(error)) return undefined
        throw error
      }
      return next.again ? 5 : next.lookAgainInMs
    },
  })
}
