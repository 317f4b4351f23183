import { namesOf } from "#api/names.ts"
import type { RestartSight } from "#core/pods/restart.ts"
import type { Client } from "#runtime/client/client.ts"
import { type KubeObject, keyOf, podDisruptionBudgets, resourceOf } from "#runtime/resource.ts"
import { Failure, type World } from "../command.ts"
import { type Followed, followSeveral } from "../follow-several.ts"
import { type KnownRequests, podsOf, type Read, readBudget, readPod, readRequest, wantedOf } from "./read.ts"
import { isPod, pods, replicaSets, type Target } from "./target.ts"

export const requests = resourceOf(namesOf("ContainerRecreateRequest"))
export type Seen = Omit<RestartSight, "maxUnavailable" | "forgiven" | "requests"> & {
  requests: readonly Read[]
  /** The pods as the server sent them, by name. */
  objects: ReadonlyMap<string, KubeObject>
}

type Looking = { client: Client; world: World; signal: AbortSignal; id: string; known: KnownRequests }

/** What a restart is decided from, again after each change. */
export async function* sights(target: Target, first: KubeObject, looking: Looking): AsyncGenerator<Seen> {
  const { client, world, signal, id, known } = looking
  const { clock, random } = world
  const onTrouble = () => world.say("lost the connection to the cluster, reconnecting")
  const isAlone = isPod(target)
  for await (const views of followSeveral(listsOf(target, first), { client, clock, random, signal, onTrouble })) {
    const now = views.target!.get(keyOf(target))
    if (now?.metadata.uid !== first.metadata.uid && !isAlone)
      throw new Failure(`${target.title} was deleted while it was restarted`)
    const own = podsOf(first, (views.pods ?? views.target!).values(), views.replicaSets?.values())
    const read = [...views.requests!.values()].map(each => readRequest(each, id, isAlone))
    yield {
      pods: own.map(readPod),
      objects: new Map(own.map(pod => [pod.metadata.name, pod])),
      requests: known.look(read),
      budgets: [...views.budgets!.values()].map(readBudget),
      wanted: wantedOf(now),
    }
  }
}

function listsOf(target: Target, first: KubeObject): Record<string, Followed> {
  const { resource, name, namespace } = target
  const labels = Object.entries(matchLabelsOf(first)).map(([key, value]) => `${key}=${value}`)
  const selected = { namespace, ...(labels.length > 0 && { labelSelector: labels.join(",") }) }
  return {
    target: { resource, name, namespace },
    ...(!isPod(target) && { pods: { resource: pods, ...selected } }),
    // Only a Deployment has something between itself and its pods.
    ...(resource.kind === "Deployment" && { replicaSets: { resource: replicaSets, ...selected } }),
    requests: { resource: requests, namespace },
    budgets: { resource: podDisruptionBudgets, namespace },
  }
}

/** Fewer pods to read. Which of them are meant is decided by their owners. */
const matchLabelsOf = (object: KubeObject): Record<string, string> =>
  (object as { spec?: { selector?: { matchLabels?: Record<string, string> } } }).spec?.selector?.matchLabels ?? {}
