import { readinessGate } from "#api/v1alpha1/readiness-gate.ts"
import { deployments, pods } from "#controllers/in-place/resources.ts"
import { grantName } from "#core/grant.ts"
import { heldMark, settingAnnotations, strategyAnnotation } from "#core/in-place/names.ts"
import type { Client } from "#runtime/client/client.ts"
import type { Resource } from "#runtime/resource.ts"
import { type Json, until } from "#tools/kube/api.ts"
import type { AimProcess, Scrape } from "./controller-process.ts"
import type { Progress } from "./progress.ts"

export const imageOf = (tag: string) => `registry.example.com/team/web:${tag}`

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

export type Web = { name: string; namespace: string; replicas: number; hasGate?: boolean; partition?: string }

/** A Deployment that has opted in. Two containers: one of them is updated. */
export async function createWeb(client: Client, web: Web): Promise<void> {
  const { name, namespace, replicas, hasGate = false, partition } = web
  const labels = { app: name }
  await client.create(deployments, {
    metadata: {
      name,
      namespace,
      annotations: {
        [strategyAnnotation]: "InPlaceIfPossible",
        ...(partition && { [settingAnnotations.partition]: partition }),
      },
    },
    spec: {
      replicas,
      selector: { matchLabels: labels },
      template: {
        metadata: { labels },
        spec: {
          ...(hasGate && { readinessGates: [{ conditionType: readinessGate }] }),
          tolerations: [{ key: "kwok.x-k8s.io/node", operator: "Exists" }],
          containers: [
            { name: "web", image: imageOf("v0") },
            { name: "side", image: imageOf("side") },
          ],
        },
      },
    },
  } as Json)
}

/** As `kubectl rollout status` decides it, and no longer held. */
const isRolledOut = ({ metadata, spec, status = {} }: Json) =>
  metadata.annotations?.[heldMark] === undefined &&
  (status.observedGeneration ?? 0) >= metadata.generation &&
  (status.updatedReplicas ?? 0) === spec.replicas &&
  (status.replicas ?? 0) === spec.replicas &&
  (status.availableReplicas ?? 0) === spec.replicas

export const rolledOut = (client: Client, web: Web, progress?: Progress, withinMs = 1_800_000) =>
  until(
    `${web.name} to be rolled out`,
    async () => {
      const found: Json = await client.get(deployments, web)
      progress?.at(found.status?.availableReplicas ?? 0)
      return isRolledOut(found)
    },
    { withinMs, everyMs: 50 },
  )

/** Whether changes of this Deployment go in place. */
export const opt = (client: Client, web: Web, isIn: boolean) =>
  client.patch(deployments, web, {
    type: "merge",
    body: { metadata: { annotations: { [strategyAnnotation]: isIn ? "InPlaceIfPossible" : null } } },
  })

export const setImage = (client: Client, web: Web, image: string) =>
  client.patch(deployments, web, {
    type: "strategic",
    body: { spec: { template: { spec: { containers: [{ name: "web", image }] } } } },
  })

/** What an update asked of the server, without watches and the Lease. */
export type Requests = {
  /** Everything that changed something or tried to, without the pull. */
  writes: number
  /** Of jobs and NodeImages, by the manager. */
  pullWrites: number
  conflicts: number
  /** Of these, those that writes to the Deployment met: its own controller writes it too. */
  workloadConflicts: number
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

/** Changes the image and waits until the Deployment is its own controller's again, with every pod updated. */
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
    questions: count("questions"),
    lists: count("lists"),
    gets: count("gets"),
  }
}

async function isLabelled(client: Client, web: Web): Promise<boolean> {
  const { metadata }: Json = await client.get(deployments, web)
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
const writing = ["create", "update", "patch", "delete"]

function requestsIn({ sum, writes, lists, gets }: Scrape): Requests {
  const requests = (labels: Record<string, string>) => sum("rest_client_requests_total", labels)
  const written = (labels: Record<string, string>) =>
    writing.map(verb => requests({ verb, ...labels })).reduce((total, each) => total + each, 0)
  const questions = requests({ verb: "create", resource: "pods/eviction" })
  const pullWrites = ofPulls.map(resource => written({ resource })).reduce((total, each) => total + each, 0)
  const ofPullsRefused = ofPulls
    .map(resource => written({ code: "409", resource }))
    .reduce((total, each) => total + each, 0)
  return {
    writes: writes - questions - pullWrites,
    pullWrites,
    conflicts: written({ code: "409" }) - ofPullsRefused,
    workloadConflicts: written({ code: "409", resource: "deployments.apps" }),
    questions,
    lists,
    gets,
  }
}
