import { decisionAnnotation, formatDecision, imagesByName, type Decision as Record_ } from "#core/image/record.ts"
import { forEachLimited } from "#lib/for-each-limited.ts"
import { earliest, type Instant } from "#lib/instant.ts"
import { createTurns } from "#lib/turns.ts"
import type { Client } from "#runtime/client/client.ts"
import { isFailure } from "#runtime/client/errors.ts"
import { nameOf } from "#runtime/resource.ts"
import type { Decision, Repair, Retarget } from "./decide.ts"
import { revisionLabel } from "./facts.ts"
import type { PullPace } from "./pull-pace.ts"
import { pods, workloadKinds } from "./resources.ts"
import type { Scene, Sources } from "./sources.ts"

/** Many fail at once when a registry does; the server is not to be the next. */
const writesAtOnce = 16

/** Shared by all AlternateImageSources of a process: a registry fails for many namespaces at once. */
export const createWriteTurns = () => createTurns({ all: writesAtOnce })

export type Acted = {
  accepted: Map<Decision, number>
  /** The server refuses us: the right is missing, or something else speaks against it. */
  refused: { reason: "Forbidden" | "Refused"; message: string } | undefined
  /** When the repairs that had to wait for their node may be sent. */
  goOnAt: Instant | undefined
}

type Surroundings = {
  client: Client
  sources: Pick<Sources, "pod" | "answered">
  inTurn: ReturnType<typeof createWriteTurns>
  pace: PullPace
}

/**
 * Carries out what was decided, each write conditional on the very object it was decided from. What has changed since
 * is left for the next look.
 */
export async function act(
  { client, sources, inTurn, pace }: Surroundings,
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
    try {
      await inTurn({ owner: decision.group.workload.namespace }, () =>
        action.do === "repair"
          ? repair(client, sources, decision, action, { by, at, operation })
          : retarget(client, sources, action, { by, at, operation }),
      )
      acted.accepted.set(decision, (acted.accepted.get(decision) ?? 0) + 1)
    } catch (error) {
      if (isFailure(error, "Conflict", "NotFound", "UnknownOutcome")) return // the next event tells
      if (!isFailure(error, "Forbidden", "Invalid", "Refused")) throw error
      const isForbidden = error.message.includes("cannot patch resource")
      acted.refused = { reason: isForbidden ? "Forbidden" : "Refused", message: error.message }
    }
  })
  return acted
}

type Signed = Pick<Record_, "by" | "at" | "operation">

async function repair(
  client: Client,
  sources: Surroundings["sources"],
  { group }: Decision,
  { pod, container, isInit, to, reason, revision }: Repair,
  signed: Signed,
): Promise<void> {
  // What a container had at first is kept through every repair: a pod without a workload is known by it.
  const was = imagesByName(sources.pod(pod.key)?.decision?.was)
  was[container] ??= group.image
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
  sources: Surroundings["sources"],
  { workload, container, isInit, from, to, reason }: Retarget,
  signed: Signed,
): Promise<void> {
  const kind = workloadKinds.find(({ name }) => name === workload.type.kind)!
  const { uid, resourceVersion, name, namespace, revision } = workload
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
      },
    },
    spec: kind.name === "cronjob" ? { jobTemplate: { spec: template } } : template,
  }
  sources.answered(kind, await client.patch(kind.resource, { name, namespace }, { type: "strategic", body }))
}
