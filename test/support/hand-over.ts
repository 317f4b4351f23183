import { type HandOver, type HandOverStep, nextOfHandOver } from "#core/canary/hand-over.ts"
import { floor, type Json, until } from "./floor.ts"

/**
 * Hands the ReplicaSet of one Deployment to another as `nextOfHandOver` says: looks, asks for the next step, does it, and
 * begins again. Returns the steps that it did.
 */
export async function handOver(namespace: string, names: { user: string; trial: string; set: string }) {
  const { api } = floor()
  const path = (plural: string, name = "") => `/apis/apps/v1/namespaces/${namespace}/${plural}/${name}`
  const revisionOf = ({ metadata }: Json) => Number(metadata.annotations?.["deployment.kubernetes.io/revision"] ?? 0)
  const ownerOf = ({ metadata }: Json) => metadata.ownerReferences?.[0]?.name

  async function look(): Promise<HandOver & { seen: { user: Json; set: Json } }> {
    const [user, trial, { items }] = await Promise.all([
      api.get(path("deployments", names.user)),
      api.find(path("deployments", names.trial)),
      api.get(path("replicasets")),
    ])
    const set = items.find(({ metadata }: Json) => metadata.name === names.set)
    const owner = ownerOf(set)
    const imageOf = ({ spec }: Json) => spec.template.spec.containers[0].image
    const others: Json[] = items.filter((each: Json) => ownerOf(each) === names.user && each !== set)
    return {
      seen: { user, set },
      ...(trial && {
        trial: {
          isPaused: trial.spec.paused === true,
          isPauseSeen:
            trial.status.observedGeneration === trial.metadata.generation &&
            trial.status.conditions.some(({ reason }: Json) => reason === "DeploymentPaused"),
          size: trial.spec.replicas,
        },
      }),
      set: {
        owner: owner === names.user ? "user" : owner === names.trial ? "trial" : "other",
        size: set.spec.replicas,
        ready: set.status.readyReplicas ?? 0,
      },
      user: {
        size: user.spec.replicas,
        isHeld: user.spec.paused === true,
        hasTestedTemplate: imageOf(user) === imageOf(set),
        hasCounted:
          revisionOf(set) === revisionOf(user) &&
          others.every(each => revisionOf(each) < revisionOf(set) && each.spec.replicas === 0) &&
          (user.status.updatedReplicas ?? 0) === user.spec.replicas,
      },
    }
  }

  async function act(step: Extract<HandOverStep, { do: string }>, { user, set }: { user: Json; set: Json }) {
    const owner = { apiVersion: "apps/v1", kind: "Deployment", name: names.user, uid: user.metadata.uid }
    const trial = path("deployments", names.trial)
    switch (step.do) {
      case "scaleTrial":
        return api.patch(trial, { spec: { replicas: step.size } })
      case "pauseTrial":
        return api.patch(trial, { spec: { paused: true } })
      case "moveSet":
        return api.patch(path("replicasets", names.set), {
          metadata: {
            resourceVersion: set.metadata.resourceVersion,
            ownerReferences: [{ ...owner, controller: true, blockOwnerDeletion: true }],
          },
        })
      case "deleteTrial":
        return api.remove(trial)
      case "resumeUser":
        return api.patch(path("deployments", names.user), { spec: { paused: false } })
      default:
        throw new Error(`no such step here: ${step.do}`)
    }
  }

  const done: string[] = []
  await until("the ReplicaSet is handed over", async () => {
    const { seen, ...state } = await look()
    const next = nextOfHandOver(state)
    if (next === "done") return true
    if ("impossible" in next) throw new Error(`impossible: ${next.impossible}`)
    if ("wait" in next) return false
    await act(next, seen)
    done.push(next.do)
    return false
  })
  return done
}
