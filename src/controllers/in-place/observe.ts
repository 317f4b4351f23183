import { labelsOf } from "#core/in-place/template.ts"
import { type UpSince, upSinceOf } from "#core/in-place/up-since.ts"
import { selects } from "#lib/label-selector.ts"
import type { Look } from "#runtime/kind-controller.ts"
import type { Snapshot } from "./plan.ts"
import type { HeldWorkload, Neighbourhood, World } from "./world.ts"

/** Losing it prolongs minReadySeconds and asks an agent once more, and nothing else. */
export type Memory = {
  upSince: UpSince
  /** By the uid of a pod: the operation for which its node's agent was asked to restart containers. */
  readonly asked: Map<string, string>
}

/** Everything the plan is made from, at this moment. */
export function observe(
  world: Pick<World, "adapter" | "around" | "imageOn">,
  look: Look<HeldWorkload, Memory>,
): Snapshot {
  const { key, object, memory, now } = look
  const { adapter } = world
  const workload = adapter.read(object)
  const { near, isCurrent } = world.around(key)
  const revisions = factsBy(near.revisions, workload.uid)
  const pods = adapter.podOwners(workload, revisions).flatMap(uid => factsBy(near.pods, uid))
  const jobs = factsBy(near.jobs, workload.uid)
  memory.upSince = upSinceOf(pods, memory.upSince, now)
  for (const uid of memory.asked.keys()) if (!pods.some(pod => pod.uid === uid)) memory.asked.delete(uid)
  return {
    workload,
    isListed: isCurrent,
    native: adapter.native(workload, revisions, pods),
    pods,
    jobs,
    disruptions: tightest(near, labelsOf(workload.template) as Record<string, string>),
    imageOn: (node, image) => world.imageOn(node, image, jobs.find(job => job.image === image)?.uid),
    upSince: uid => memory.upSince.get(uid)?.since,
    isAsked: (uid, operation) => memory.asked.get(uid) === operation,
    now,
  }
}

function factsBy<T>(
  cache: {
    keysBy(name: string, value: string): ReadonlySet<string>
    get(key: string): { facts?: T | undefined } | undefined
  },
  owner: string,
): T[] {
  return [...cache.keysBy("owner", owner)].sort().flatMap(key => cache.get(key)?.facts ?? [])
}

/** Of the budgets that cover the pods, the one that allows least. */
function tightest({ budgets }: Neighbourhood, labels: Readonly<Record<string, string>>): Snapshot["disruptions"] {
  let found: Snapshot["disruptions"]
  for (const [, { name, selector, allowed }] of budgets.entries())
    if (selector && selects(selector, labels) && allowed < (found?.allowed ?? Number.POSITIVE_INFINITY))
      found = { budget: name, allowed }
  return found
}
