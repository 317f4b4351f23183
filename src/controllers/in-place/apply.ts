import assert from "node:assert/strict"
import { formatMark, formatNote, type WorkloadNote } from "#core/in-place/marks.ts"
import { inPlaceAnnotation, revisionLabel, updateStateLabel } from "#core/in-place/names.ts"
import type { PodPatch, PodRestart, PodWrite } from "#core/in-place/next.ts"
import { nameAfter } from "#core/in-place/operation.ts"
import { gateOf, releaseOf, unmarkOf } from "#core/in-place/release.ts"
import { annotationsOf, labelsOf, type PodTemplate } from "#core/in-place/template.ts"
import { forEachLimited } from "#lib/batch.ts"
import { earliest, type Instant } from "#lib/instant.ts"
import { noVersion } from "#lib/resource-version.ts"
import type { Client } from "#runtime/client/client.ts"
import { isFailure } from "#runtime/client/errors.ts"
import { type Outcome, outcomeOf, saysNotGranted } from "#runtime/client/outcome.ts"
import type { Look } from "#runtime/kind-controller.ts"
import { apiVersionOf, type KubeObject, keyOf } from "#runtime/resource.ts"
import type { Workload } from "./facts.ts"
import { type Memory, observe } from "./observe.ts"
import { type Action, type Plan, plan, type Snapshot } from "./plan.ts"
import { report } from "./report.ts"
import { imagePullJobs, pods, requests } from "./resources.ts"
import type { HeldWorkload, World } from "./world.ts"
import { outcomeOfCreate, outcomeOfDelete, ownedBy } from "./writes.ts"

export type Done = { lookAgainAt?: Instant | undefined }

const soonMs = 1000
const budgetMs = 5000
const podsAtOnce = 16

/** Carries the plan out in order, and stops at the first write that was not applied: the next look decides anew. */
export async function apply(
  world: World,
  seen: Snapshot,
  { actions, nodes = [] }: Plan,
  look: Look<HeldWorkload, Memory>,
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
        const outcome = await writePod(world, seen.workload, each)
        const { write } = each
        const again = await settle(world, seen, look, outcome)
        times.push(again)
        if (outcome.is !== "Written") return
        if (write.do === "restart") look.memory.asked.set(write.pod.uid, write.operation)
        else look.memory.written.set(keyOf(write.pod), versionOf(outcome.object))
      })
      // A pod that is still drained is found only while the workload is held or labelled.
      const again = earliest(...times)
      if (again !== undefined) return { lookAgainAt: again }
      continue
    }
    if (action.do === "release" && action.looksAgain && !(await isStillDone(world, look)))
      return { lookAgainAt: now + soonMs }
    const outcome = await write(world, seen.workload, action)
    // The update does not need the revision before; only `kubectl rollout undo` does.
    if (outcome.is === "Refused" && action.do === "keepHistory") {
      tellOfRefusal(world, look.object, outcome, "the revision before is not kept for kubectl rollout undo")
      continue
    }
    const again = await settle(world, seen, look, outcome)
    if (again !== undefined) return { lookAgainAt: again }
    if (outcome.is === "Written" && outcome.object) await world.shown(key, outcome.object as KubeObject)
    if ("note" in action) tell(world, look.object, seen.workload, action.note)
  }
  return {}
}

/**
 * The last look before a workload is let go, from caches that show everything that was committed until now: a pod that
 * was made from the old template a moment before the flip is still brought along.
 */
async function isStillDone(world: World, look: Look<HeldWorkload, Memory>): Promise<boolean> {
  const { near } = world.around(look.key)
  await Promise.all([near.pods.catchUp(), near.revisions.catchUp()])
  const again = plan(observe(world, { ...look, now: world.clock.now() }))
  return again.actions.at(-1)?.do === "release"
}

function tell(world: World, object: HeldWorkload, { note: before }: Workload, note: WorkloadNote): void {
  const episode = report(before, note)
  if (episode) world.events.record(typed(world, object), episode)
}

/** A list leaves these out. */
const typed = ({ adapter: { resource } }: World, object: HeldWorkload) => ({
  ...object,
  apiVersion: apiVersionOf(resource),
  kind: resource.kind,
})

type Result = Outcome<unknown> | { is: "Spent" }

/** When to look again because of this write; undefined if it was applied. */
async function settle(
  world: World,
  { workload }: Snapshot,
  { key, object, now }: Look<HeldWorkload, Memory>,
  outcome: Result,
): Promise<Instant | undefined> {
  if (outcome.is === "Written") {
    world.holds.delete(key)
    return undefined
  }
  if (outcome.is === "Spent") return now + budgetMs
  if (outcome.is !== "Refused") return now + soonMs
  const isNews = !world.holds.has(key)
  const retryAt = world.holds.add({ key }, { reason: reasonOf(outcome), message: outcome.error.said }, now)
  if (isNews) tellOfRefusal(world, object, outcome, `${workload.name} stays held`)
  return retryAt
}

type Refusal = Extract<Outcome<unknown>, { is: "Refused" }>

const reasonOf = ({ error }: Refusal) => (saysNotGranted(error.message) ? "Forbidden" : "Refused")

function tellOfRefusal(world: World, object: HeldWorkload, refusal: Refusal, effect: string): void {
  const message = `${effect}: ${refusal.error.said}`
  world.events.record(typed(world, object), { type: "Warning", reason: reasonOf(refusal), message })
}

function write(
  { client, adapter }: World,
  workload: Workload,
  action: Exclude<Action, { do: "pod" }>,
): Promise<Outcome<unknown>> {
  const { resourceVersion, namespace } = workload
  const { resource } = adapter
  const onWorkload = (body: object) => outcomeOf(client.patch(resource, workload, { type: "merge", body }))
  switch (action.do) {
    case "note":
      return onWorkload({
        metadata: { resourceVersion, annotations: { [inPlaceAnnotation]: formatNote(action.note) } },
      })
    case "unmark":
      return onWorkload(unmarkOf(resourceVersion))
    case "release":
      return onWorkload(releaseOf(resourceVersion, action.note, adapter.releasedSpec(workload)))
    case "rollback": {
      const { template, note } = action
      const body = [
        { op: "replace", path: "/metadata/resourceVersion", value: resourceVersion },
        { op: "replace", path: "/spec/template", value: template },
        { op: "add", path: `/metadata/annotations/${inPlaceAnnotation.replace("/", "~1")}`, value: formatNote(note) },
      ]
      return outcomeOf(client.patch(resource, workload, { type: "json", body }))
    }
    case "createJob":
      return outcomeOfCreate(client.create(imagePullJobs, jobOf(adapter, workload, action) as never))
    case "deleteJob": {
      const { name, uid } = action.job
      return outcomeOfDelete(
        client.delete(imagePullJobs, { name, namespace }, { uid, propagationPolicy: "Background" }),
      )
    }
    default:
      assert(adapter.write, `a ${resource.kind} has no action ${action.do}`)
      return adapter.write(client, workload, action)
  }
}

function jobOf(
  { resource }: World["adapter"],
  workload: Workload,
  { name, image, pullPolicy, pullSecrets }: Extract<Action, { do: "createJob" }>,
) {
  const { namespace, selector } = workload
  return {
    apiVersion: apiVersionOf(imagePullJobs),
    kind: imagePullJobs.kind,
    metadata: { name, namespace, ownerReferences: ownedBy(resource, workload) },
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

const versionOf = (written: unknown) => (written as KubeObject).metadata.resourceVersion ?? noVersion

type PodAction = Extract<Action, { do: "pod" }>

async function writePod(
  { client, clock, adapter, metrics }: World,
  workload: Workload,
  { write, template, touched }: PodAction,
): Promise<Result> {
  const { pod } = write
  if (write.do === "restart")
    return outcomeOfCreate(client.create(requests, requestOf(adapter, workload, write) as never))
  if (write.asksBudget) {
    const answer = await mayDisturb(client, pod)
    if (!answer || answer.is === "Spent") metrics.askedBudget(!answer)
    if (answer !== undefined) return answer
  }
  if (write.do === "label") return outcomeOf(client.patch(pods, pod, { type: "merge", body: labelBody(write) }))
  if (write.do === "patch")
    return outcomeOf(client.patch(pods, pod, { type: "strategic", body: patchBody(write, template, touched) }))
  const body = gateOf(pod, write.do === "undrain", clock.now())
  return outcomeOf(client.patch(pods, pod, { type: "strategic", body }, { subresource: "status" }))
}

/** Named after the containers that are to be stopped: asked again, it is the same request. */
function requestOf({ resource }: World["adapter"], workload: Workload, { pod, containers, operation }: PodRestart) {
  const ids = containers.map(name => pod.containers.get(name)?.id)
  const name = nameAfter(pod.name, [pod.uid, operation, ids])
  return {
    apiVersion: apiVersionOf(requests),
    kind: requests.kind,
    metadata: { name, namespace: pod.namespace, ownerReferences: ownedBy(resource, workload) },
    spec: {
      podName: pod.name,
      containers: containers.map(name => ({ name })),
      activeDeadlineSeconds: Math.max(60, workload.deadlineSeconds),
      ttlSecondsAfterFinished: 600,
    },
  }
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

/** Conditional on the very pod that was proven. Its mark says so: the label may be older than the last change. */
const labelBody = ({ pod: { uid, resourceVersion, mark }, revision }: Extract<PodWrite, { do: "label" }>) => ({
  metadata: {
    uid,
    resourceVersion,
    labels: { [revisionLabel]: revision },
    ...(mark && { annotations: { [inPlaceAnnotation]: formatMark({ ...mark, proven: true }) } }),
  },
})

/** One write, conditional on the very pod that was seen: with a gate, the one whose gate is False. */
function patchBody({ pod, images, mark }: PodPatch, template: PodTemplate, touched: PodAction["touched"]) {
  const { uid, resourceVersion, containers } = pod
  // In the order of the pod: a strategic patch would change it, and the server refuses that.
  const listed = (isInit: boolean) =>
    [...containers]
      .filter(([name, each]) => each.isInit === isInit && images[name] !== undefined)
      .map(([name]) => ({ name, image: images[name] }))
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
