import { formatMark, formatNote, type WorkloadNote } from "#core/in-place/marks.ts"
import { heldMark, inPlaceAnnotation, updateStateLabel } from "#core/in-place/names.ts"
import type { PodPatch, PodWrite } from "#core/in-place/next.ts"
import { gateOf, releaseOf, unmarkOf } from "#core/in-place/release.ts"
import { annotationsOf, hashLabel, labelsOf, type PodTemplate, withoutHash } from "#core/in-place/template.ts"
import { forEachLimited } from "#lib/batch.ts"
import { earliest, type Instant } from "#lib/instant.ts"
import type { Client } from "#runtime/client/client.ts"
import { isFailure } from "#runtime/client/errors.ts"
import { type Outcome, outcomeOf, saysNotGranted } from "#runtime/client/outcome.ts"
import type { Look } from "#runtime/kind-controller.ts"
import { apiVersionOf } from "#runtime/resource.ts"
import { type Revision, revisionKey, type Workload } from "./facts.ts"
import { type Memory, observe } from "./observe.ts"
import { type Action, type Plan, plan, type Snapshot } from "./plan.ts"
import { report } from "./report.ts"
import { deployments, imagePullJobs, pods, replicaSets } from "./resources.ts"
import type { HeldDeployment, World } from "./world.ts"

export type Done = { lookAgainAt?: Instant | undefined }

const soonMs = 1000
const budgetMs = 5000
const podsAtOnce = 16

/** Carries the plan out in order, and stops at the first write that was not applied: the next look decides anew. */
export async function apply(
  world: World,
  seen: Snapshot,
  { actions, nodes = [] }: Plan,
  look: Look<HeldDeployment, Memory>,
): Promise<Done> {
  const { key, now } = look
  world.waitFor(key, nodes)
  const held = world.holds.on(key, seen.workload.namespace)
  if (held && now < held.retryAt) return { lookAgainAt: held.retryAt }
  const podWrites = actions.flatMap(action => (action.do === "pod" ? [action] : []))
  for (const action of actions) {
    if (action.do === "pod") {
      if (action !== podWrites[0]) continue
      const times: (Instant | undefined)[] = []
      await forEachLimited(podWrites, podsAtOnce, async each => {
        times.push(await settle(world, seen, look, await writePod(world, each)))
      })
      // A pod that is still drained is found only while the workload is held or labelled.
      const again = earliest(...times)
      if (again !== undefined) return { lookAgainAt: again }
      continue
    }
    if (action.do === "release" && action.isFenced && !(await isStillDone(world, look)))
      return { lookAgainAt: now + soonMs }
    const outcome = await write(world.client, seen.workload, action)
    const again = await settle(world, seen, look, outcome)
    if (again !== undefined) return { lookAgainAt: again }
    if ("note" in action) tell(world, look.object, seen.workload, action.note)
  }
  return {}
}

/**
 * The last look before a workload is let go, from caches that show everything that was committed until now: a pod that
 * was made from the old template a moment before the flip is still brought along.
 */
async function isStillDone(world: World, look: Look<HeldDeployment, Memory>): Promise<boolean> {
  const { near } = world.around(look.key)
  await Promise.all([near.pods.catchUp(), near.revisions.catchUp()])
  const again = plan(observe(world, { ...look, now: world.clock.now() }))
  return again.actions.at(-1)?.do === "release"
}

function tell({ events }: World, object: HeldDeployment, { note: before }: Workload, note: WorkloadNote): void {
  const episode = report(before, note)
  if (episode) events.record({ ...object, apiVersion: apiVersionOf(deployments), kind: deployments.kind }, episode)
}

type Result = Outcome<unknown> | { is: "Spent" }

/** When to look again because of this write; undefined if it was applied. */
async function settle(
  world: World,
  { workload }: Snapshot,
  { key, object, now }: Look<HeldDeployment, Memory>,
  outcome: Result,
): Promise<Instant | undefined> {
  if (outcome.is === "Written") {
    world.holds.delete(key)
    return undefined
  }
  if (outcome.is === "Spent") return now + budgetMs
  if (outcome.is !== "Refused") return now + soonMs
  const { said, message } = outcome.error
  const reason = saysNotGranted(message) ? "Forbidden" : "Refused"
  const isNews = !world.holds.has(key)
  const retryAt = world.holds.add({ key }, { reason, message: said }, now)
  const words = `${workload.name} stays held: ${said}`
  if (isNews)
    world.events.record(
      { ...object, apiVersion: apiVersionOf(deployments), kind: deployments.kind },
      { type: "Warning", reason, message: words },
    )
  return retryAt
}

/** A create that finds its object there has what it wanted. */
async function outcomeOfCreate(create: Promise<unknown>): Promise<Outcome<unknown>> {
  return outcomeOf(
    create.catch(error => {
      if (!isFailure(error, "Exists")) throw error
    }),
  )
}

function write(client: Client, workload: Workload, action: Exclude<Action, { do: "pod" }>): Promise<Outcome<unknown>> {
  const { resourceVersion, namespace } = workload
  const onWorkload = (body: object) => outcomeOf(client.patch(deployments, workload, { type: "merge", body }))
  switch (action.do) {
    case "note":
      return onWorkload({
        metadata: { resourceVersion, annotations: { [inPlaceAnnotation]: formatNote(action.note) } },
      })
    case "unmark":
      return onWorkload(unmarkOf(resourceVersion))
    case "release":
      return onWorkload(releaseOf(resourceVersion, action.note))
    case "rollback": {
      const { template, note } = action
      const body = [
        { op: "replace", path: "/metadata/resourceVersion", value: resourceVersion },
        { op: "replace", path: "/spec/template", value: template },
        { op: "add", path: `/metadata/annotations/${inPlaceAnnotation.replace("/", "~1")}`, value: formatNote(note) },
      ]
      return outcomeOf(client.patch(deployments, workload, { type: "json", body }))
    }
    case "createJob":
      return outcomeOfCreate(client.create(imagePullJobs, jobOf(workload, action) as never))
    case "deleteJob": {
      const { name, uid } = action.job
      return outcomeOfDelete(
        client.delete(imagePullJobs, { name, namespace }, { uid, propagationPolicy: "Background" }),
      )
    }
    case "keepHistory":
      return outcomeOfCreate(client.create(replicaSets, historyOf(workload, action) as never))
    case "deleteDouble": {
      const { uid, resourceVersion: version } = action.revision
      return outcomeOf(client.delete(replicaSets, action.revision, { uid, resourceVersion: version }))
    }
    case "flip":
      return outcomeOf(client.patch(replicaSets, action.revision, { type: "json", body: flipOf(action) }))
  }
}

async function outcomeOfDelete(deletion: Promise<void>): Promise<Outcome<unknown>> {
  return outcomeOf(
    deletion.catch(error => {
      if (!isFailure(error, "NotFound")) throw error
    }),
  )
}

const ownedBy = ({ name, uid }: Workload) => [
  {
    apiVersion: apiVersionOf(deployments),
    kind: deployments.kind,
    name,
    uid,
    controller: true,
    blockOwnerDeletion: true,
  },
]

function jobOf(workload: Workload, { name, image, pullPolicy, pullSecrets }: Extract<Action, { do: "createJob" }>) {
  const { namespace, selector } = workload
  return {
    apiVersion: apiVersionOf(imagePullJobs),
    kind: imagePullJobs.kind,
    metadata: { name, namespace, ownerReferences: ownedBy(workload) },
    spec: {
      image,
      // The nodes on which its pods run, also those that come later.
      podSelector: selector,
      pullSecrets,
      imagePullPolicy: pullPolicy,
      parallelism: "100%",
      pullPolicy: { backoffLimit: 100 },
      completionPolicy: { type: "Never" },
    },
  }
}

/** The template before, as a ReplicaSet without pods: for `kubectl rollout history` and `undo`. */
function historyOf(workload: Workload, { name, hash, of }: Extract<Action, { do: "keepHistory" }>) {
  const { namespace, selector } = workload
  const template = withHash(of.template, hash)
  return {
    apiVersion: apiVersionOf(replicaSets),
    kind: replicaSets.kind,
    metadata: {
      name,
      namespace,
      labels: labelsOf(template),
      annotations: { ...annotationsBefore(of), [revisionKey]: of.number },
      ownerReferences: ownedBy(workload),
    },
    spec: {
      replicas: 0,
      selector: { ...selector, matchLabels: { ...selector.matchLabels, [hashLabel]: hash } },
      template,
    },
  }
}

/** `kubectl rollout undo` replaces the Deployment's own annotations by these. */
const annotationsBefore = ({ annotations }: Revision) =>
  Object.fromEntries(Object.entries(annotations).filter(([key]) => !ofItsOwn.has(key)))

/** What the hold and the Deployment controller write is about one ReplicaSet. */
const ofItsOwn = new Set<string>([
  heldMark,
  inPlaceAnnotation,
  "deployment.kubernetes.io/desired-replicas",
  "deployment.kubernetes.io/max-replicas",
  "deployment.kubernetes.io/revision-history",
])

const withHash = (template: PodTemplate, hash: unknown): PodTemplate => {
  const plain = withoutHash(template)
  return { ...plain, metadata: { ...plain.metadata, labels: { ...labelsOf(plain), [hashLabel]: hash } } }
}

/** Conditional on the ReplicaSet that was seen: a `replace` of its version makes it so. */
const flipOf = ({ revision, template }: { revision: Revision; template: PodTemplate }) => [
  { op: "replace", path: "/metadata/resourceVersion", value: revision.resourceVersion },
  { op: "replace", path: "/spec/template", value: withHash(template, labelsOf(revision.template)[hashLabel]) },
]

type PodAction = Extract<Action, { do: "pod" }>

async function writePod({ client, clock }: World, { write, template, touched }: PodAction): Promise<Result> {
  const { pod } = write
  if (write.asksBudget) {
    const answer = await mayDisturb(client, pod)
    if (answer !== undefined) return answer
  }
  if (write.do === "patch")
    return outcomeOf(client.patch(pods, pod, { type: "strategic", body: patchBody(write, template, touched) }))
  const body = gateOf(pod, write.do === "undrain", clock.now())
  return outcomeOf(client.patch(pods, pod, { type: "strategic", body }, { subresource: "status" }))
}

/** Undefined if every budget agrees. A pod with two budgets cannot be evicted at all, and is left alone. */
async function mayDisturb(client: Client, pod: PodWrite["pod"]): Promise<Result | undefined> {
  try {
    return (await client.mayEvict(pods, pod)).is === "Allowed" ? undefined : { is: "Spent" }
  } catch (error) {
    if (isFailure(error, "UnknownOutcome")) return { is: "Spent" }
    if (isFailure(error, "NotFound")) return { is: "Outdated", error }
    if (isFailure(error, "Forbidden")) return { is: "Refused", error }
    throw error
  }
}

/** One write, conditional on the very pod that was seen: with a gate, the one whose gate is False. */
function patchBody({ pod, images, mark }: PodPatch, template: PodTemplate, touched: PodAction["touched"]) {
  const { uid, resourceVersion, containers } = pod
  const listed = (isInit: boolean) =>
    Object.entries(images)
      .filter(([name]) => containers.get(name)?.isInit === isInit)
      .map(([name, image]) => ({ name, image }))
  const values = (keys: readonly string[], from: Readonly<Record<string, unknown>>) =>
    Object.fromEntries(keys.map(key => [key, from[key] ?? null]))
  const [init, plain] = [listed(true), listed(false)]
  return {
    metadata: {
      uid,
      resourceVersion,
      labels: { ...values(touched.labels, labelsOf(template)), [updateStateLabel]: mark.operation },
      annotations: { ...values(touched.annotations, annotationsOf(template)), [inPlaceAnnotation]: formatMark(mark) },
    },
    ...(init.length + plain.length > 0 && {
      spec: { ...(init.length > 0 && { initContainers: init }), ...(plain.length > 0 && { containers: plain }) },
    }),
  }
}
