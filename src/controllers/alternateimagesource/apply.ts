import type { AlternateImageSource } from "#api/v1alpha1/alternateimagesource/index.ts"
import { decisionAnnotation, formatDecision, type ImageRecord, imagesByName } from "#core/image/record.ts"
import { holdFields } from "#core/in-place/own-hold.ts"
import { standsFor } from "#core/pods/one-at-a-time.ts"
import { forEachLimited } from "#lib/batch.ts"
import { earliest, type Instant } from "#lib/instant.ts"
import { createLimiter } from "#lib/limiter.ts"
import type { Client } from "#runtime/client/client.ts"
import { outcomeOf, saysNotGranted } from "#runtime/client/outcome.ts"
import type { Look } from "#runtime/kind-controller.ts"
import { nameOf } from "#runtime/resource.ts"
import type { Memory } from "./controller.ts"
import { revisionLabel } from "./facts.ts"
import type { Decision, Group, Repair, Retarget } from "./group.ts"
import { askerOf, holdName } from "./observe.ts"
import type { Plan, Snapshot } from "./plan.ts"
import { pods, workloadKinds } from "./resources.ts"
import type { Scene, Sources } from "./sources.ts"
import type { World } from "./world.ts"

/** Many pods fail at once when a registry does; their repairs must not overload the server. */
const writesAtOnce = 16

/** Shared by all AlternateImageSources of a process: a registry fails for many namespaces at once. */
export const createWriteTurns = () => createLimiter({ all: writesAtOnce }).run

export type Acted = {
  accepted: Map<Decision, number>
  /** The server refuses our writes: the right is missing, or something else forbids it. */
  refused: { reason: "Forbidden" | "Refused"; message: string } | undefined
  /** When the repairs that had to wait for their node may be sent. */
  goOnAt: Instant | undefined
}

/** What came of a plan. */
export type Done = Omit<Acted, "goOnAt"> & {
  /** A refusal, and when to try again. */
  refusal?: Group["refusal"]
  /** Registries are being asked. The outcome is reported together with their answers. */
  isAwaiting: boolean
  lookAgainAt?: Instant | undefined
}

/** Answers that arrive within this time are reported together with their outcome, not before. */
const answerMs = 1000

/** Asks registries in the background, and carries out what was decided. */
export async function apply(
  world: World,
  { seen }: Snapshot,
  { decisions }: Plan,
  { key, object, memory, now }: Look<AlternateImageSource, Memory>,
): Promise<Done> {
  if (seen.is !== "Watched") return { accepted: new Map(), refused: undefined, isAwaiting: false }
  // Ask before acting, which may take long: an answer that arrives meanwhile need not be asked for again.
  ask(world, key, decisions)
  const by = `alternateimagesource/${object.metadata.name}`
  const acted = await act(world, decisions, seen, { by, at: now })
  const refusal = hold(world, object, acted)
  const isAsking = decisions.some(({ asks }) => asks.length > 0)
  memory.asksSince = isAsking ? (memory.asksSince ?? now) : undefined
  const answeredBy = memory.asksSince === undefined ? now : memory.asksSince + answerMs
  const isAwaiting = answeredBy > now && acted.accepted.size === 0 && !acted.refused
  const lookAgainAt = earliest(acted.goOnAt, refusal?.retryAt, isAwaiting ? answeredBy : undefined)
  return { ...acted, refusal, isAwaiting, lookAgainAt }
}

function ask({ sources, probes, enqueueAfter }: World, key: string, decisions: readonly Decision[]): void {
  const { namespace = "" } = nameOf(key)
  // While more answers are expected, one look handles several of them.
  const onAnswer = () => enqueueAfter(key, probes.areOpen ? sources.waitMs(namespace) : 0)
  for (const { group, asks } of decisions)
    for (const image of asks) probes.ask(askerOf(sources, group), image, onAnswer)
}

/** A refused write is tried again after a growing pause, or as soon as a grant changes. */
function hold(
  { holds, clock }: World,
  object: AlternateImageSource,
  { refused, accepted }: Acted,
): Group["refusal"] | undefined {
  const name = holdName(object)
  if (refused) return { reason: refused.reason, retryAt: holds.add({ key: name }, refused, clock.now()) }
  if (accepted.size > 0) holds.delete(name)
  return undefined
}

/**
 * Carries out what was decided. Each write is conditional on the object it was decided from; an object that has changed
 * since is left for the next look.
 */
export async function act(
  { client, sources, inTurn, pace }: Pick<World, "client" | "inTurn" | "pace"> & { sources: Answered },
  decisions: readonly Decision[],
  { hasArrived }: Pick<Scene, "hasArrived">,
  { by, at }: { by: string; at: Instant },
): Promise<Acted> {
  const acted: Acted = { accepted: new Map(), refused: undefined, goOnAt: undefined }
  const mayGo = ({ pod: { node, pullsAlways }, to }: Repair) => {
    if (node === "" || (!pullsAlways && hasArrived(node, to))) return true
    const later = pace.waitFor(node)
    acted.goOnAt = earliest(acted.goOnAt, later)
    return later === undefined
  }
  const jobs = decisions.flatMap(decision => [
    ...(decision.retarget ? [{ decision, action: decision.retarget }] : []),
    ...decision.repairs.filter(mayGo).map(action => ({ decision, action })),
  ])
  await forEachLimited(jobs, writesAtOnce, async ({ decision, action }) => {
    if (acted.refused?.reason === "Forbidden") return
    const operation = `incident-${decision.incident?.since ?? ""}`
    const signed = { by, at, operation }
    const write = () =>
      action.do === "repair"
        ? repair(client, sources, decision, action, signed)
        : retarget(client, sources, action, signed)
    const outcome = await outcomeOf(inTurn({ owner: decision.group.workload.namespace }, write))
    if (outcome.is === "Written") acted.accepted.set(decision, (acted.accepted.get(decision) ?? 0) + 1)
    if (outcome.is === "Refused") {
      const { message } = outcome.error
      acted.refused = { reason: saysNotGranted(message) ? "Forbidden" : "Refused", message }
    }
  })
  return acted
}

type Answered = Pick<Sources, "pod" | "answered">

type Signed = Pick<ImageRecord, "by" | "at" | "operation">

async function repair(
  client: Client,
  sources: Answered,
  { group }: Decision,
  { pod, container, isInit, to, reason, revision }: Repair,
  signed: Signed,
): Promise<void> {
  // The first image of a container is kept through every repair: a pod without a workload is known by it.
  const before = sources.pod(pod.key)?.decision
  const was = imagesByName(before?.was)
  // An update in place may have brought another version since: then the record of the earlier repair is void.
  const stands = standsFor(before, { name: container, image: pod.image })
  if (was[container] === undefined || was[container] !== stands) was[container] = group.image
  const decision = formatDecision({ from: pod.image, was, to, reason, ...signed })
  const { uid, resourceVersion } = pod
  const body = {
    metadata: {
      uid,
      resourceVersion,
      annotations: { [decisionAnnotation]: decision },
      ...(revision !== undefined && { labels: { [revisionLabel]: revision } }),
    },
    spec: { [isInit ? "initContainers" : "containers"]: [{ name: container, image: to }] },
  }
  sources.answered(undefined, await client.patch(pods, nameOf(pod.key), { type: "strategic", body }))
}

async function retarget(
  client: Client,
  sources: Answered,
  { workload, container, isInit, from, to, reason }: Retarget,
  signed: Signed,
): Promise<void> {
  const kind = workloadKinds.find(({ name }) => name === workload.type.kind)!
  const { uid, resourceVersion, name, namespace, revision, inPlace } = workload
  // One request: its own controller never sees the new template without the hold.
  const hold = inPlace && holdFields(kind.kind, inPlace, undefined)
  const template = {
    template: { spec: { [isInit ? "initContainers" : "containers"]: [{ name: container, image: to }] } },
  }
  const body = {
    metadata: {
      uid,
      resourceVersion,
      annotations: {
        [decisionAnnotation]: formatDecision({
          from,
          was: { [container]: from },
          to,
          reason,
          ...signed,
          ...(revision !== undefined && { revision }),
        }),
        ...hold?.annotations,
      },
      ...(hold?.labels && { labels: hold.labels }),
    },
    spec: kind.name === "cronjob" ? { jobTemplate: { spec: template } } : { ...template, ...hold?.spec },
  }
  sources.answered(kind, await client.patch(kind.resource, { name, namespace }, { type: "strategic", body }))
}
