import { imagePullJobs, pods } from "#controllers/in-place/resources.ts"
import { canaryHolder } from "#core/canary/hold.ts"
import { holdKinds } from "#core/in-place/hold.ts"
import { lostHold, parseHold, parseNote } from "#core/in-place/marks.ts"
import { heldMark, inPlaceAnnotation, inPlaceHolder } from "#core/in-place/names.ts"
import { type PodFacts, readPod } from "#core/in-place/pod.ts"
import { gateOf, releaseOf, unmarkOf } from "#core/in-place/release.ts"
import { imagesOf, untouched } from "#core/in-place/template.ts"
import { formatSelector } from "#lib/label-selector.ts"
import { nameSome } from "#lib/text.ts"
import type { Client } from "#runtime/client/client.ts"
import { isFailure } from "#runtime/client/errors.ts"
import { releaseFromCanary } from "../canary/release.ts"
import { connectionOf, Failure, type Input, type Run, UsageError, type World } from "../command.ts"
import { namespaceOf } from "../namespace.ts"
import { dryRunOf } from "../operate.ts"
import {
  type Found,
  findHoldable,
  holdable as kinds,
  patched,
  type Workload,
  holdableWords as words,
} from "../workloads/holdable.ts"

export const run: Run = async (input, world) => {
  const client = await world.connect(connectionOf(input))
  try {
    const found = await wanted(client, input, world)
    const lines: string[] = []
    for (const each of found) lines.push(await release(client, each, { world, isDryRun: dryRunOf(input) }))
    return { text: `${lines.length > 0 ? lines.join("\n") : "no workload is held"}\n`, exitCode: 0 }
  } finally {
    client.close()
  }
}

async function wanted(client: Client, input: Input, world: World): Promise<Found[]> {
  const { arguments: names, options } = input
  if (options.all && names.length > 0) throw new UsageError(`--all includes ${names[0]}: write one or the other`)
  if (!options.all && names.length === 0)
    throw new UsageError(`release needs one of ${words}, or --all for all that are held`)
  const found: Found[] = []
  if (options.all) {
    const { namespace } = connectionOf(input)
    for (const kind of kinds) {
      const { items } = await client.list<Workload>(kind.resource, { namespace, labelSelector: heldMark })
      found.push(...items.map(object => ({ kind, object })))
    }
    return found
  }
  return findHoldable(client, names, await namespaceOf(input, world))
}

/** First the workload, so that nothing is drained or pulled again; then what surrounds it, and the label last. */
async function release(
  client: Client,
  found: Found,
  { world, isDryRun }: { world: World; isDryRun: boolean },
): Promise<string> {
  const { kind } = found
  const { name, namespace, annotations = {}, labels = {} } = found.object.metadata
  const title = `${kind.word}/${name} of namespace ${namespace}`
  const isMarked = (annotations[heldMark] ?? labels[heldMark]) !== undefined
  if (!isMarked) return `${title} is not held`
  if (isDryRun) return `${title} would be released (dry run: nothing was written)`
  if (labels[heldMark] === canaryHolder) return releaseFromCanary(client, found, title)
  const released = await patched(client, found, ({ metadata, spec }) => {
    const { annotations = {}, labels = {}, resourceVersion = "" } = metadata
    const isOurs = labels[heldMark] === inPlaceHolder
    const lost = isOurs ? lostHold(annotations[heldMark], parseNote(annotations[inPlaceAnnotation])) : undefined
    const hold = parseHold(annotations[heldMark]) ?? lost
    if (!hold) return undefined
    if (hold.by !== inPlaceHolder) throw new Failure(`${title} is held by ${hold.by}, which aim does not know`)
    const before = parseNote(annotations[inPlaceAnnotation])
    const note = { operation: `${hold.generation}-`, touched: untouched, from: {}, to: {}, ...before }
    const { isStanding: _, ...released } = { ...note, reason: "Released", message: "by aim release" }
    const { isInForce, released: fieldsOf } = holdKinds[kind.name]
    // What is no hold of ours is its owner's.
    return releaseOf(resourceVersion, released, isInForce(spec) && !hold.isLent ? fieldsOf(hold, spec) : {})
  })
  const changed = await cleanUp(client, released, world)
  await patched(client, { kind, object: released }, ({ metadata: { labels = {}, resourceVersion = "" } }) =>
    labels[heldMark] === undefined ? undefined : unmarkOf(resourceVersion),
  )
  const said = `${title} is released: its own controller goes on with its template`
  return changed.length === 0
    ? said
    : `${said}; ${nameSome(changed.slice(0, namesMost), changed.length)} had got another image: delete what is not replaced`
}

const namesMost = 10

/** The names of pods that were changed to another image than the template's: a rollout may not replace them. */
async function cleanUp(client: Client, { metadata, spec }: Workload, { clock }: World): Promise<string[]> {
  const { namespace, uid = "" } = metadata
  const { items } = await client.list(pods, { namespace, labelSelector: formatSelector(spec.selector) })
  const found = items.flatMap(each => readPod(each) ?? [])
  const images = imagesOf(spec.template)
  const isOther = (pod: PodFacts, name: string) =>
    pod.containers.get(name)?.image !== images.get(name) && pod.mark?.to[name] !== images.get(name)
  for (const pod of found) {
    if (!pod.gate?.isDrained) continue
    const body = gateOf(pod, true, clock.now())
    // A pod that has changed or gone in between is the controller's, or needs nothing.
    await orSkip(client.patch(pods, pod, { type: "strategic", body }, { subresource: "status" }))
  }
  const jobs = await client.list(imagePullJobs, { namespace }).catch(error => {
    if (isFailure(error, "NotFound")) return { items: [] } // the kind is not installed
    throw error
  })
  for (const job of jobs.items)
    if (job.metadata.ownerReferences?.some(owner => owner.uid === uid))
      await orSkip(
        client.delete(imagePullJobs, job.metadata, { uid: job.metadata.uid!, propagationPolicy: "Background" }),
      )
  return found.flatMap(pod => (Object.keys(pod.mark?.to ?? {}).some(name => isOther(pod, name)) ? [pod.name] : []))
}

async function orSkip(write: Promise<unknown>): Promise<void> {
  await write.catch(error => {
    if (!isFailure(error, "Conflict", "NotFound")) throw error
  })
}
