import type { AlternateImageSource, AlternateImageSourceStatus } from "#api/v1alpha1/alternateimagesource/index.ts"
import { tryAgainMs } from "#core/try-again.ts"
import { earliest, type Instant } from "#lib/instant.ts"
import { isSame } from "#lib/same.ts"
import type { RegistryClient } from "#registry/index.ts"
import type { Controller, Wiring } from "#runtime/controller.ts"
import { newest } from "#runtime/newest.ts"
import { watchGrants } from "../grants.ts"
import { type Acted, act, createWriteTurns } from "./apply.ts"
import type { Asker } from "./ask.ts"
import { type Decision, decide, type Group } from "./decide.ts"
import { createAlternateImageSourceMetrics } from "./metrics.ts"
import { Probes } from "./probes.ts"
import { PullPace } from "./pull-pace.ts"
import { alternateImageSources, permissions } from "./resources.ts"
import { type Scene, Sources } from "./sources.ts"
import { crashEndsAt, storyOf, tell, tellTooMany, tellUnlisted } from "./tell.ts"

export type Surroundings = { registry?: Pick<RegistryClient, "resolve"> | undefined }

/**
 * Lets containers be pulled from an equivalent repository where their own fails. Reads AlternateImageSources,
 * workloads, pods and, by name, their pull secrets; writes the image of containers that have not started, with
 * `apply: Template` also that of their workload, and the AlternateImageSource's status.
 */
export const createAlternateImageSourceController = ({ registry }: Surroundings = {}): Controller => ({
  name: "alternateimagesource",
  permissions,
  concurrency: 4,
  turns: { of: key => key.slice(0, key.indexOf("/")), most: 2 },
  setup(wiring) {
    const { client, clock } = wiring
    const sources = new Sources(wiring)
    const metrics = createAlternateImageSourceMetrics(wiring.metrics)
    const probes = new Probes({ client, clock, registry, onAnswer: metrics.probed })
    const hands = { client, sources, inTurn: createWriteTurns(), pace: new PullPace(clock) }
    const memories = new Map<string, Memory>()
    watchGrants(wiring, namespace => {
      for (const [key, memory] of memories)
        if (namespace === undefined || key.startsWith(`${namespace}/`)) {
          memory.refusal = undefined
          wiring.enqueue(key)
        }
      probes.forget(namespace)
    })

    return {
      async reconcile(key) {
        if (key.endsWith("/")) return sources.isReady ? sources.settle(key.slice(0, -1)) : undefined
        if (sources.isReady) await sources.settle(key.slice(0, key.indexOf("/")))
        const cached = sources.get(key)
        if (!cached || cached.metadata.deletionTimestamp) {
          memories.delete(key)
          metrics.forget(key)
          return
        }
        const memory = memories.get(key) ?? {}
        memories.set(key, memory)
        const source = newest(cached, memory.written)
        const now = clock.now()
        if (!sources.isReady) {
          const { forbidden } = sources
          if (forbidden.length > 0) await write(wiring, source, tellUnlisted(source, forbidden, now), memory)
          return now + listingMs // their end wakes us too
        }

        if (!sources.isActive(key)) {
          metrics.forget(key)
          return void (await write(wiring, source, tellTooMany(source, now), memory))
        }
        const scene = sources.scene(source)
        const decideOn = (group: Group) => decideFor(source, group, memory, asked(sources, probes, group), now)
        const wanted = scene.groups.map(decideOn)
        // Before acting, which may take long: what is answered meanwhile would be asked again. Where more answers are
        // to come, one look is for several of them.
        const onAnswer = () =>
          wiring.enqueueAfter(key, probes.areOpen ? sources.waitMs(cached.metadata.namespace ?? "") : 0)
        for (const { group, asks } of wanted) {
          const asker = askerOf(sources, group)
          for (const image of asks) probes.ask(asker, image, onAnswer)
        }
        const by = `alternateimagesource/${source.metadata.name}`
        const acted = await act(hands, wanted, scene, { by, at: now })
        remember(memory, acted, clock.now())
        // What the server refused is told as refused, not as being done.
        const isOpen = (decision: Decision) => acted.refused !== undefined && !acted.accepted.has(decision)
        const decisions = wanted.map(decision => (isOpen(decision) ? decideOn(decision.group) : decision))
        const lookAgainAt = earliest(
          acted.goOnAt,
          ...decisions.flatMap(({ lookAgainAt, group }) => [lookAgainAt, crashEndsAt(group, now)]),
        )
        const answeredBy = awaitsAnswers(memory, decisions, acted, now)
        if (answeredBy !== undefined && answeredBy > now) return earliest(answeredBy, lookAgainAt)
        const status = await report(wiring, source, scene, decisions, acted, memory)
        metrics.publish(key, status, decisions, acted)
        const retryAt = acted.refused ? memory.refusal?.retryAt : undefined
        return earliest(retryAt, lookAgainAt)
      },
    }
  },
})

/** How soon to look again at lists that are not in. */
const listingMs = 5000

type Memory = {
  written?: AlternateImageSource
  /** Since when registries are being asked. */
  asksSince?: Instant | undefined
  /** The server did not let us; asked again later and later, or when somebody grants something. */
  refusal?: { reason: "Forbidden" | "Refused"; retryAt: Instant; attempts: number } | undefined
}

function decideFor(
  source: AlternateImageSource,
  group: Group,
  { refusal }: Memory,
  probe: (image: string) => ReturnType<Probes["get"]>,
  now: Instant,
): Decision {
  const { policy } = source.spec
  const before = source.status?.targetsAvailable.find(
    entry => entry.uid === group.workload.uid && entry.container === group.container,
  )
  return decide({ ...group, refusal }, { policy, before, probe, now })
}

const asked = (sources: Sources, probes: Probes, group: Group) => {
  const asker = askerOf(sources, group)
  return (image: string) => probes.get(asker, image)
}

/** Any of the failing pods: those of one workload pull with the same credentials. */
function askerOf(sources: Sources, { failing, workload }: Group): Asker {
  const pod = failing[0] && sources.pod(failing[0].key)
  return pod ?? { namespace: workload.namespace, secrets: [], account: "default" }
}

function remember(memory: Memory, { refused, accepted }: Acted, now: Instant): void {
  if (refused) {
    const attempts = (memory.refusal?.attempts ?? 0) + 1
    const retryAt = now + tryAgainMs(attempts)
    memory.refusal = { reason: refused.reason, retryAt, attempts }
  } else if (accepted.size > 0) memory.refusal = undefined
}

/** What registries answer within this is told together with what comes of it, not before. */
const answerMs = 1000

function awaitsAnswers(
  memory: Memory,
  decisions: readonly Decision[],
  { accepted, refused }: Acted,
  now: Instant,
): Instant | undefined {
  const isAsking = decisions.some(({ asks }) => asks.length > 0)
  memory.asksSince = isAsking ? (memory.asksSince ?? now) : undefined
  if (memory.asksSince === undefined || accepted.size > 0 || refused) return undefined
  return memory.asksSince + answerMs
}

/** Told after it was done, so that nothing is told that did not happen. The write fails if anything has changed since. */
async function report(
  wiring: Wiring,
  source: AlternateImageSource,
  scene: Scene,
  decisions: readonly Decision[],
  { accepted }: Acted,
  memory: Memory,
): Promise<AlternateImageSourceStatus> {
  const status = tell(source, scene, decisions, accepted, wiring.clock.now())
  await write(wiring, source, status, memory)
  for (const episode of storyOf(source.status, decisions, accepted)) wiring.events.record(source, episode)
  return status
}

async function write(
  { client }: Wiring,
  source: AlternateImageSource,
  status: AlternateImageSourceStatus,
  memory: Memory,
): Promise<void> {
  if (isSame(source.status, status)) return
  memory.written = await client.replace(alternateImageSources, { ...source, status }, { subresource: "status" })
}
