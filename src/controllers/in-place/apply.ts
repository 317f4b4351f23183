import assert from "node:assert/strict"
import { isDisturbed } from "#core/in-place/cover.ts"
import { formatMark, formatNote, renewedHoldOf, standingHoldOf, type WorkloadNote } from "#core/in-place/marks.ts"
import { heldMark, inPlaceAnnotation, revisionLabel, updateStateLabel } from "#core/in-place/names.ts"
import type { PodPatch, PodRestart, PodWrite } from "#core/in-place/next.ts"
import { nameAfter, operationOf } from "#core/in-place/operation.ts"
import { stopOf } from "#core/in-place/own-hold.ts"
import type { PodFacts } from "#core/in-place/pod.ts"
import { gateOf, lendOf, releaseOf, settleOf, unmarkOf } from "#core/in-place/release.ts"
import { annotationsOf, labelsOf, type PodTemplate } from "#core/in-place/template.ts"
import { forEachLimited } from "#lib/batch.ts"
import { earliest, type Instant } from "#lib/instant.ts"
import { formatSelector } from "#lib/label-selector.ts"
import { noVersion } from "#lib/resource-version.ts"
import type { Client } from "#runtime/client/client.ts"
import { isFailure, type KubeError } from "#runtime/client/errors.ts"
import { type Outcome, orGone, orThere, outcomeOf, saysNotGranted } from "#runtime/client/outcome.ts"
import type { Look } from "#runtime/kind-controller.ts"
import { apiVersionOf, controlledBy, type KubeObject, keyOf } from "#runtime/resource.ts"
import type { Workload } from "./facts.ts"
import { type Memory, observe } from "./observe.ts"
import { type Action, type Ending, type Plan, plan as planOf, type Refusal, type Snapshot } from "./plan.ts"
import { allowedBeside } from "./refused.ts"
import { report } from "./report.ts"
import { imagePullJobs, pods, requests } from "./resources.ts"
import type { HeldWorkload, World } from "./world.ts"

export type Done = { lookAgainAt?: Instant | undefined }

const soonMs = 1000
const budgetMs = 5000
const podsAtOnce = 16

/** Carries the plan out in order, and stops at the first write that was not applied: the next look decides anew. */
export async function apply(world: World, seen: Snapshot, plan: Plan, look: Look<HeldWorkload, Memory>): Promise<Done> {
  const { key, now, memory } = look
  const { actions, nodes = [], budgets = [] } = plan
  world.waitFor(key, { nodes, budgets })
  if (seen.isListed) world.budgets.keep(key, disturbedOf(seen, plan))
  memory.waitsSince = plan.isWaiting ? (memory.waitsSince ?? now) : undefined
  const held = heldOf(world, seen, look, targetOf(seen, plan))
  const allowed = held ? actions.filter(held.allows) : actions
  const podWrites = allowed.flatMap(action => (action.do === "pod" ? [action] : []))
  for (const action of allowed) {
    if (action.do === "pod") {
      if (action !== podWrites[0]) continue
      const again = await writePods(world, seen, look, podWrites)
      // A pod that is still drained is found only while the workload is held or labelled.
      if (again !== undefined) return { lookAgainAt: again }
      continue
    }
    if (isEnding(action) && action.looksAgain && !(await isStillDone(world, seen, look, action)))
      return { lookAgainAt: now + soonMs }
    const outcome = await write(world, seen.workload, action)
    // The update does not need the revision before; only `kubectl rollout undo` does.
    if (outcome.is === "Refused" && action.do === "keepHistory") {
      const effect = "the revision before is not kept for kubectl rollout undo"
      tellOfRefusal(world, look.object, effect, { reason: reasonOf(outcome.error), message: outcome.error.said })
      continue
    }
    const again = settle(world, seen, look, { action, outcome })
    if (again !== undefined) return { lookAgainAt: again }
    if (outcome.is === "Written" && outcome.object) await world.shown(key, outcome.object as KubeObject)
    if ("note" in action) tell(world, look.object, seen.workload, action.note)
  }
  if (held) return { lookAgainAt: held.until }
  // A pod is drained before it is changed: what was refused is tried again only later.
  if (!memory.refusal || !isOfServer(memory.refusal)) world.holds.delete(key)
  return {}
}

/** Pods that have a place in the budgets over them: disturbed and not proven yet, or perhaps disturbed. */
function disturbedOf({ pods, now }: Snapshot, { judged = [] }: Plan): PodFacts[] {
  const restarting = new Set(judged.flatMap(({ pod, standing }) => (standing.is === "Restarting" ? [pod.uid] : [])))
  return pods.filter(pod => restarting.has(pod.uid) || isDisturbed(pod, now))
}

const isEnding = (action: Action): action is Ending => endings.has(action.do)
const endings: ReadonlySet<string> = new Set<Ending["do"]>(["release", "settle", "lend"])

/** What is refused for one target may be allowed for another, and a release is another matter than an update. */
const targetOf = ({ workload }: Snapshot, { actions }: Plan) =>
  `${operationOf(workload)}${actions.some(isEnding) ? " release" : ""}`

type Held = { readonly until: Instant; readonly allows: (action: Action) => boolean }

/** Looks at what the server has refused. A refusal that was about another target is forgotten. */
function heldOf(
  { holds }: World,
  { workload }: Snapshot,
  { key, now, memory }: Look<HeldWorkload, Memory>,
  target: string,
): Held | undefined {
  const held = holds.on(key, workload.namespace)
  const isSame = memory.target === target
  memory.target = target
  if (!held || now >= held.retryAt) return undefined
  const allows = allowedBeside(held, memory.refusal, isSame)
  if (allows) return { until: held.retryAt, allows }
  holds.delete(key)
  return undefined
}

/** Writes to pods, several at once. Returns when to look again because of them; undefined if all were applied. */
async function writePods(
  world: World,
  seen: Snapshot,
  look: Look<HeldWorkload, Memory>,
  writes: readonly PodAction[],
): Promise<Instant | undefined> {
  const { memory, now } = look
  const times: (Instant | undefined)[] = []
  const refusals: NonNullable<Memory["refusal"]>[] = []
  const written = new Set<string>()
  await forEachLimited(writes, podsAtOnce, async each => {
    const { write } = each
    const outcome = await writeInPlace(world, seen, look, each)
    if (outcome.is === "Written") {
      written.add(write.do)
      if (write.do === "restart") memory.asked.set(write.pod.uid, write.operation)
      else memory.written.set(keyOf(write.pod), versionOf(outcome.object))
      return
    }
    const refusal = refusalOf(seen, write, outcome)
    if (refusal) refusals.push({ ...refusal, what: write.do })
    times.push(outcome.is === "Refused" ? undefined : now + (outcome.is === "Spent" ? budgetMs : soonMs))
  })
  // One that the server refuses says more than one that a budget keeps.
  const refused = refusals.find(isOfServer)
  if (refused) times.push(hold(world, seen, look, refused))
  else if (refusals[0]) memory.refusal = refusals[0]
  else if (isOver(memory.refusal, written)) memory.refusal = null
  return earliest(...times)
}

const isOfServer = <R extends Refusal>(refusal: R): refusal is R & ServerRefusal => refusal.reason !== "BudgetSpent"

/** Draining a pod shows nothing of the right to change it. */
const isOver = (refusal: Memory["refusal"], written: ReadonlySet<string>) =>
  written.size > 0 && (!refusal || refusal.reason === "BudgetSpent" || written.has(refusal.what))

/** What the workload's note says of a write to a pod that was refused. */
function refusalOf({ workload }: Snapshot, { pod }: PodWrite, outcome: Result): Refusal | undefined {
  const operation = operationOf(workload)
  if (outcome.is === "Spent") return { operation, reason: "BudgetSpent", message: `pod ${pod.name}: ${outcome.said}` }
  if (outcome.is !== "Refused") return undefined
  return { operation, reason: reasonOf(outcome.error), message: `pod ${pod.name}: ${outcome.error.said}` }
}

const reasonOf = ({ message }: KubeError): "Forbidden" | "Refused" =>
  saysNotGranted(message) ? "Forbidden" : "Refused"

type ServerRefusal = { readonly reason: "Forbidden" | "Refused"; readonly message: string }

/** The next look comes soon, to write why; writes come later. */
function hold(
  world: World,
  { workload }: Snapshot,
  { key, object, now, memory }: Look<HeldWorkload, Memory>,
  { reason, message, what }: ServerRefusal & { what?: string },
): Instant {
  const isNews = !world.holds.has(key)
  const retryAt = world.holds.add({ key }, { reason, message }, now)
  if (what !== undefined) memory.refusal = { operation: operationOf(workload), reason, message, what, retryAt }
  if (isNews) tellOfRefusal(world, object, `${workload.name} stays held`, { reason, message })
  return isNews ? now + soonMs : retryAt
}

function tellOfRefusal(world: World, object: HeldWorkload, effect: string, { reason, message }: ServerRefusal): void {
  world.events.record(typed(world, object), { type: "Warning", reason, message: `${effect}: ${message}` })
}

/**
 * The last look before a workload is let go, from caches that show everything of it that was committed until now: a pod
 * that was made from the old template a moment before the flip is still brought along.
 */
async function isStillDone(
  world: World,
  { workload, pods }: Snapshot,
  look: Look<HeldWorkload, Memory>,
  ending: Ending,
) {
  const { near } = world.around(look.key)
  const labelSelector = formatSelector(workload.selector)
  await Promise.all([
    near.pods.catchUp(undefined, { labelSelector, keys: new Set(pods.map(keyOf)) }),
    near.revisions.catchUp(undefined, { labelSelector, keys: near.revisions.keysBy("owner", workload.uid) }),
  ])
  // Its own controller has written it meanwhile: the release would meet a conflict.
  if (world.newest(look.key)?.metadata.resourceVersion !== workload.resourceVersion) return false
  const again = planOf(observe(world, { ...look, now: world.clock.now() }))
  return again.actions.at(-1)?.do === ending.do
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

type Result =
  | Outcome<unknown>
  /** A budget has no room. */
  | { is: "Spent"; said: string }
  /** What the write was decided from is so no longer. */
  | { is: "Late" }

/** Writes to the workload itself: what refuses them refuses a note, too. */
const ownWrites: readonly Action["do"][] = ["note", "release", "settle", "lend", "stand", "rollback", "unmark"]

/** When to look again because of this write; undefined if it was applied. */
function settle(
  world: World,
  seen: Snapshot,
  look: Look<HeldWorkload, Memory>,
  { action, outcome }: { action: Action; outcome: Outcome<unknown> },
): Instant | undefined {
  const isOwn = ownWrites.includes(action.do)
  if (outcome.is === "Written") {
    if (look.memory.refusal?.what === action.do) look.memory.refusal = null
    return undefined
  }
  if (outcome.is !== "Refused") return look.now + soonMs
  const refusal = { reason: reasonOf(outcome.error), message: outcome.error.said }
  return hold(world, seen, look, isOwn ? refusal : { ...refusal, what: action.do })
}

function write(
  { client, adapter }: World,
  workload: Workload,
  action: Exclude<Action, { do: "pod" }>,
): Promise<Outcome<unknown>> {
  const { resourceVersion, namespace, generation, hold } = workload
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
      return onWorkload(releaseOf(resourceVersion, action.note, hold?.isLent ? {} : adapter.releasedSpec(workload)))
    case "settle":
      return onWorkload(settleOf(resourceVersion, action.note, renewedHoldOf(hold!, generation)))
    case "lend": {
      const held = renewedHoldOf(hold!, hold!.generation, true)
      return onWorkload(lendOf(resourceVersion, action.note, held, adapter.releasedSpec(workload)))
    }
    case "stand": {
      const annotations = { [heldMark]: standingHoldOf(action.original, generation) }
      return onWorkload({ metadata: { resourceVersion, annotations }, spec: stopOf(resource.kind) })
    }
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
      return outcomeOf(orThere(client.create(imagePullJobs, jobOf(adapter, workload, action) as never)))
    case "deleteJob": {
      const { name, uid } = action.job
      return outcomeOf(
        orGone(client.delete(imagePullJobs, { name, namespace }, { uid, propagationPolicy: "Background" })),
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
    metadata: { name, namespace, ownerReferences: [controlledBy(resource, workload)] },
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

/**
 * A pod that serves has a place in every budget over it from before the question until it is proven, gone, or was not
 * disturbed after all. A write without an answer may be applied later: it keeps its place until the pod is seen again.
 */
async function writeInPlace(
  world: World,
  seen: Snapshot,
  { key, memory }: Look<HeldWorkload, Memory>,
  action: PodAction,
): Promise<Result> {
  const { write } = action
  const { pod } = write
  const full = write.asksBudget ? world.budgets.take(key, pod) : undefined
  if (full !== undefined) return { is: "Spent", said: `PodDisruptionBudget ${full} has no room for it` }
  let result: Result | undefined
  try {
    result = await writePod(world, seen, key, action)
    return result
  } finally {
    const isDisturbing = write.do === "drain" || write.do === "patch"
    if (result?.is === "Unknown" && isDisturbing)
      memory.doubts.set(pod.uid, { key: keyOf(pod), version: pod.resourceVersion })
    else if (result?.is !== "Written" && write.asksBudget) world.budgets.free(key, pod)
  }
}

async function writePod(
  world: World,
  seen: Snapshot,
  key: string,
  { write, template, touched }: PodAction,
): Promise<Result> {
  const { client, clock, adapter, metrics } = world
  const { pod } = write
  if (write.do === "restart")
    return outcomeOf(orThere(client.create(requests, requestOf(adapter, seen.workload, write) as never)))
  if (write.asksBudget) {
    const answer = await mayDisturb(client, pod)
    if (!answer || answer.is === "Spent") metrics.askedBudget(!answer)
    if (answer !== undefined) return answer
  }
  if (write.do !== "undrain" && !isStillWanted(world, seen, key, write)) return { is: "Late" }
  if (write.do === "label") return outcomeOf(client.patch(pods, pod, { type: "merge", body: labelBody(write) }))
  if (write.do === "patch")
    return outcomeOf(client.patch(pods, pod, { type: "strategic", body: patchBody(write, template, touched) }))
  const body = gateOf(pod, write.do === "undrain", clock.now())
  return outcomeOf(client.patch(pods, pod, { type: "strategic", body }, { subresource: "status" }))
}

/**
 * Between the decision and the write, the workload may have been given another template or been let go, and an image may
 * have gone from its node.
 */
function isStillWanted(
  { adapter, newest, imageOn }: World,
  { workload, jobs, imageOn: said }: Snapshot,
  key: string,
  write: PodWrite,
): boolean {
  const object = newest(key)
  if (!object || object.metadata.uid !== workload.uid) return false
  if (object.metadata.resourceVersion !== workload.resourceVersion) {
    const present = adapter.read(object)
    if (operationOf(present) !== operationOf(workload) || present.isInForce !== workload.isInForce) return false
  }
  if (write.do !== "patch") return true
  const { node } = write.pod
  return Object.values(write.images).every(image => {
    const job = jobs.find(each => each.image === image)
    return said(node, image).is !== "Present" || imageOn(node, image, job?.uid).is === "Present"
  })
}

/** Named after the containers that are to be stopped: asked again, it is the same request. */
function requestOf({ resource }: World["adapter"], workload: Workload, { pod, containers, operation }: PodRestart) {
  const ids = containers.map(name => pod.containers.get(name)?.id)
  const name = nameAfter(pod.name, [pod.uid, operation, ids])
  return {
    apiVersion: apiVersionOf(requests),
    kind: requests.kind,
    metadata: { name, namespace: pod.namespace, ownerReferences: [controlledBy(resource, workload)] },
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
    const answer = await client.mayEvict(pods, pod)
    return answer.is === "Allowed" ? undefined : answer
  } catch (error) {
    if (isFailure(error, "UnknownOutcome")) return { is: "Spent", said: error.said }
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
