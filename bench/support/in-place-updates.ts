import { pods, replicaSets } from "#controllers/in-place/resources.ts"
import { grantName } from "#core/grant.ts"
import { heldMark } from "#core/in-place/names.ts"
import type { Client } from "#runtime/client/client.ts"
import { events } from "#runtime/events.ts"
import { type Resource, resourceName } from "#runtime/resource.ts"
import { type Json, until } from "#tools/kube/api.ts"
import type { AimProcess, Scrape } from "./controller-process.ts"
import { imageOf, kindOf, kinds, rolledOut, setImage, type Web } from "./in-place-workloads.ts"
import type { Progress } from "./progress.ts"

const roleBindings: Resource = {
  group: "rbac.authorization.k8s.io",
  version: "v1",
  plural: "rolebindings",
  kind: "RoleBinding",
  namespaced: true,
}

/** The workloads of a namespace may be changed: without it, nothing is held. */
export async function grant(client: Client, namespace: string): Promise<void> {
  await client.create(roleBindings, {
    metadata: { name: grantName, namespace },
    roleRef: { apiGroup: roleBindings.group, kind: "ClusterRole", name: grantName },
    subjects: [],
  } as Json)
}

/** What an update asked of the server, without watches and the Lease. */
export type Requests = {
  /** Everything that changed something or tried to, without the pull. */
  writes: number
  /** Of jobs and NodeImages, by the manager. */
  pullWrites: number
  conflicts: number
  /** Of these, those that writes to the workload met: its own controller writes it too. */
  workloadConflicts: number
  /** Writes to the workload, to ReplicaSets, and events: what is constant. */
  workloadWrites: number
  revisionWrites: number
  eventWrites: number
  /** Dry-run evictions. */
  questions: number
  lists: number
  gets: number
}

export type Update = Requests & {
  seconds: number
  /** Of the manager. */
  cpuSeconds: number
}

/** Changes the image and waits until the workload is its own controller's again, with every pod updated. */
export async function updateInPlace(
  { client, manager, progress }: { client: Client; manager: AimProcess; progress: Progress },
  web: Web,
  tag: string,
): Promise<Update> {
  progress.begin(`${web.replicas} pods in place`, web.replicas)
  const uids = await uidsOf(client, web)
  const before = { requests: requestsIn(await manager.scrape()), cpu: manager.cpuSeconds() }
  const startedAt = performance.now()
  await setImage(client, web, imageOf(tag))
  await rolledOut(client, web)
  const seconds = (performance.now() - startedAt) / 1000
  await until("the label to be gone", async () => !(await isLabelled(client, web)))
  const after = { requests: requestsIn(await manager.scrape()), cpu: manager.cpuSeconds() }
  if ((await uidsOf(client, web)) !== uids) throw new Error("pods were re-created: the update was not in place")
  const { requests } = after
  const count = (of: keyof Requests) => requests[of] - before.requests[of]
  return {
    seconds,
    cpuSeconds: after.cpu - before.cpu,
    writes: count("writes"),
    pullWrites: count("pullWrites"),
    conflicts: count("conflicts"),
    workloadConflicts: count("workloadConflicts"),
    workloadWrites: count("workloadWrites"),
    revisionWrites: count("revisionWrites"),
    eventWrites: count("eventWrites"),
    questions: count("questions"),
    lists: count("lists"),
    gets: count("gets"),
  }
}

async function isLabelled(client: Client, web: Web): Promise<boolean> {
  const { metadata }: Json = await client.get(kindOf(web).resource, web)
  return metadata.labels?.[heldMark] !== undefined
}

async function uidsOf(client: Client, { name, namespace }: Web): Promise<string> {
  const { items } = await client.list(pods, { namespace, labelSelector: `app=${name}` })
  const uids = (items as Json[])
    .filter(({ metadata }) => !metadata.deletionTimestamp)
    .map(({ metadata }) => metadata.uid)
  return uids.sort().join(" ")
}

const group = "autoimagemanager.io"
const ofPulls = ["", "/status"].flatMap(part => [`nodeimages.${group}${part}`, `imagepulljobs.${group}${part}`])
const workloads = Object.values(kinds).map(({ resource }) => resourceName(resource))
const writing = ["create", "update", "patch", "delete"]

function requestsIn({ sum, writes, lists, gets }: Scrape): Requests {
  const requests = (labels: Record<string, string>) => sum("rest_client_requests_total", labels)
  const written = (labels: Record<string, string>) =>
    writing.map(verb => requests({ verb, ...labels })).reduce((total, each) => total + each, 0)
  const questions = requests({ verb: "create", resource: "pods/eviction" })
  const to = (resources: readonly string[], labels = {}) =>
    resources.map(resource => written({ resource, ...labels })).reduce((total, each) => total + each, 0)
  const conflict = { code: "409" }
  const pullWrites = to(ofPulls)
  return {
    writes: writes - questions - pullWrites,
    pullWrites,
    conflicts: written(conflict) - to(ofPulls, conflict),
    workloadConflicts: to(workloads, conflict),
    workloadWrites: to(workloads),
    revisionWrites: to([resourceName(replicaSets)]),
    eventWrites: to([resourceName(events)]),
    questions,
    lists,
    gets,
  }
}
