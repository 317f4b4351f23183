import { namesOf } from "#api/names.ts"
import { nodes } from "#controllers/in-place/resources.ts"
import { heldMark } from "#core/in-place/names.ts"
import { type PodFacts, readPod } from "#core/in-place/pod.ts"
import { type Sight, sightsOf } from "#explain/workloads/facts.ts"
import { formatSelector, type LabelSelector } from "#lib/label-selector.ts"
import { fetchAll } from "#operations/fetch.ts"
import type { Client } from "#runtime/client/client.ts"
import { isFailure } from "#runtime/client/errors.ts"
import { listAll } from "#runtime/client/list-all.ts"
import {
  controllerRevisions,
  type KubeObject,
  podDisruptionBudgets,
  type Resource,
  resourceOf,
} from "#runtime/resource.ts"
import type { World } from "../command.ts"
import type { Followed } from "../follow-several.ts"
import { pods, replicaSets } from "../restart/target.ts"
import { serverNow } from "../server-now.ts"
import type { Workloads } from "./words.ts"

const nodeImages = resourceOf(namesOf("NodeImage"))

type Asked = Workloads & { namespace: string | undefined }

/** The workloads of these names, or all, with what surrounds them. `isWhole`: with budgets and what agents report. */
export async function lookAtWorkloads(
  client: Client,
  world: World,
  { resource, names, namespace }: Asked,
  isWhole = false,
): Promise<Sight[]> {
  const workloads = await fetchAll<KubeObject>(client, resource, names, { namespace })
  if (workloads.length === 0) return []
  const selected = workloads.length === 1 ? selectedBy(workloads[0]!) : {}
  const where = { namespace, ...selected }
  const isUnderWay = isWhole || workloads.some(({ metadata }) => metadata.labels?.[heldMark] !== undefined)
  const [revisions, all, limits, agents] = await Promise.all([
    listAll(client, revisionsOf(resource), where),
    listAll(client, pods, where),
    isWhole ? orNone(listAll(client, podDisruptionBudgets, { namespace }), podDisruptionBudgets, world) : undefined,
    isUnderWay ? orNone(listAll(client, nodeImages), nodeImages, world) : undefined,
  ])
  const troubled = isUnderWay ? await nodesOf(client, all.items) : []
  // A list leaves the kind out of its items.
  const kinded = workloads.map(workload => ({ ...workload, kind: resource.kind }))
  const lists = { revisions: revisions.items, pods: all.items, budgets: limits?.items ?? [], nodeImages: agents?.items }
  return sightsOf(kinded, { ...lists, nodes: troubled, now: serverNow(client, world) })
}

/** The nodes of pods that are not ready: what such a pod shows may be of before its node was lost. */
async function nodesOf(client: Client, list: readonly KubeObject[]): Promise<KubeObject[]> {
  const names = new Set(list.flatMap(object => troubledNode(readPod(object))))
  return (await Promise.all([...names].slice(0, nodesMost).map(name => nodeNamed(client, name)))).flat()
}

const troubledNode = (pod: PodFacts | undefined) => (!pod || pod.isReady || pod.node === "" ? [] : [pod.node])

/** A node that is gone reports nothing either. Most users may not read nodes: then nothing is known of it. */
async function nodeNamed(client: Client, name: string): Promise<KubeObject[]> {
  try {
    return [await client.get(nodes, { name })]
  } catch (error) {
    if (isFailure(error, "NotFound")) return [{ metadata: { name } }]
    if (isFailure(error, "Forbidden")) return []
    throw error
  }
}

/** Each is a request of its own; of more than these, the first ones tell enough. */
const nodesMost = 20

/** One of them, which must be there. */
export async function lookAtWorkload(
  client: Client,
  world: World,
  { resource, name, namespace }: { resource: Resource; name: string; namespace: string },
  isWhole = true,
): Promise<Sight> {
  const [sight] = await lookAtWorkloads(client, world, { resource, names: [name], namespace }, isWhole)
  return sight!
}

/** For `status -w`. */
export const listsOf = ({ resource, names, namespace }: Asked, workloads: readonly KubeObject[]) => {
  const where = { namespace, ...(workloads.length === 1 && names.length === 1 ? selectedBy(workloads[0]!) : {}) }
  return {
    workloads: { resource, namespace, ...(names.length === 1 && { name: names[0] }) },
    revisions: { resource: revisionsOf(resource), ...where },
    pods: { resource: pods, ...where },
  } satisfies Record<string, Followed>
}

const revisionsOf = ({ kind }: Resource) => (kind === "Deployment" ? replicaSets : controllerRevisions)

function selectedBy(workload: KubeObject): { labelSelector?: string } {
  const { selector } = (workload as KubeObject & { spec?: { selector?: LabelSelector } }).spec ?? {}
  return selector ? { labelSelector: formatSelector(selector) } : {}
}

/** A list that may not be read, or whose kind is not installed, is named and left out. */
async function orNone<T>(list: Promise<T>, { kind }: Resource, { say }: World): Promise<T | undefined> {
  try {
    return await list
  } catch (error) {
    if (!isFailure(error, "Forbidden", "NotFound")) throw error
    say(`Not readable, and left out: ${kind} (${(error as Error).message})`)
    return undefined
  }
}
