import { closest } from "#lib/closest.ts"
import { formatDuration, parseDuration } from "#lib/duration.ts"
import { type Rollout, rolloutOf, type Seen } from "#operations/rollout.ts"
import { progressLine } from "#operations/words.ts"
import type { Client } from "#runtime/client/client.ts"
import { sleep } from "#runtime/clock.ts"
import { type KubeObject, keyOf, type Resource } from "#runtime/resource.ts"
import { standingOf } from "#runtime/standing.ts"
import { type Answer, connectionOf, Failure, type Input, type Run, UsageError, type World } from "../command.ts"
import { follow } from "../follow.ts"
import { canaries, ours, parseReferences, serviceImages, shortOf } from "../kinds.ts"
import { namespaceOf } from "../namespace.ts"
import { standingLine } from "../render/kind.ts"
import { workloadsIn } from "../workloads/words.ts"

/** How the waiting for one rollout ended. */
export type Ending = { name: string; of: Watched; line?: string | undefined; rollout?: Rollout | undefined } & (
  | { is: "complete" }
  | { is: "failed" } // halted or stalled: the rollout says why
  | { is: "missing"; meant?: string | undefined }
  | { is: "deleted" }
  | { is: "timed out"; afterMs: number }
)

export const run: Run = async (input, world) => {
  const workloads = workloadsIn(input.arguments)
  const { resource, names } = workloads ?? parseReferences(input.arguments, ours)
  if (names.length === 0) throw new UsageError(`which one? Write ${shortOf(resource)}/NAME`)
  const timeoutMs = timeoutOf(input)
  const namespace = resource.namespaced ? await namespaceOf(input, world) : undefined
  const of = workloads
    ? (await import("../workloads/wait.ts")).changes(resource, namespace!)
    : resource === serviceImages
      ? rollouts()
      : resource === canaries
        ? (await import("../canary/wait.ts")).runs(namespace!)
        : readiness(resource, namespace)
  const client = await world.connect(connectionOf(input))
  try {
    return await waitUntilOver([...new Set(names)], { client, world, timeoutMs, of })
  } finally {
    client.close()
  }
}

/** The result of a wait, for this command and for `--wait` of others. */
export async function waitUntilOver(names: readonly string[], waiting: Waiting): Promise<Answer> {
  const endings = await waitFor(names, waiting)
  const failed = endings.filter(({ is }) => is !== "complete")
  if (failed.length > 0) throw new Failure(failed.map(sentence).join("\n"))
  return { text: endings.map(ending => `${sentence(ending)}\n`).join(""), exitCode: 0 }
}

export function timeoutOf({ options }: Input): number {
  const given = options.timeout as string
  const timeoutMs = parseDuration(given)
  if (timeoutMs === undefined)
    throw new UsageError(`--timeout: ${given} is not a duration: write 90s, 10m or 1h30m, or 0 to check once`)
  return timeoutMs
}

type Waiting = {
  client: Client
  world: World
  timeoutMs: number
  /** Default: rollouts, until they are complete. */
  of?: Watched
}

/** What is waited for. */
export type Watched = {
  resource: Resource
  namespace?: string | undefined
  /** What it is in the end: `complete`, unless it is `ready`. */
  endsReady?: true
  /** Its state in a line, and how it ended, if it has. */
  read(object: KubeObject): { line: string; is: "complete" | "failed" | undefined; rollout?: Rollout }
  /** Where another object decides too: why the end that was read is not the end yet. */
  whyNotYet?(object: KubeObject, client: Client): Promise<string | undefined>
}

export const rollouts = (judge: (rollout: Rollout) => "complete" | "failed" | undefined = isOver): Watched => ({
  resource: serviceImages,
  read(object) {
    const rollout = rolloutOf(object as Seen)
    return { line: progressLine(rollout), is: judge(rollout), rollout }
  },
})

/** Waits for Ready. An AlternateImageSource may be ready while containers run from elsewhere. */
const readiness = (resource: Resource, namespace: string | undefined): Watched => ({
  resource,
  namespace,
  endsReady: true,
  read(object) {
    const standing = standingOf(object)
    const is = standing.state === "Ready" ? "complete" : standing.state === "Stalled" ? "failed" : undefined
    return { line: standingLine(shortOf(resource), { ...object.metadata, ...standing }), is }
  },
})

function isOver({ state }: Rollout) {
  if (state === "Complete") return "complete"
  // Complete once, and no longer healthy: a pipeline must not continue from here.
  return failed.has(state) ? "failed" : undefined
}

const failed: ReadonlySet<Rollout["state"]> = new Set(["Halted", "Stalled", "RolledBack", "Degraded"])

/** Waits for each of them separately: one failure does not hide the results of the others. */
export const waitFor = (names: readonly string[], waiting: Waiting): Promise<Ending[]> =>
  Promise.all(names.map(name => waitForOne(name, waiting)))

async function waitForOne(name: string, { client, world, timeoutMs, of = rollouts() }: Waiting): Promise<Ending> {
  const { clock, random } = world
  const { resource, namespace } = of
  const timeIsUp = new AbortController()
  const cancel = timeoutMs > 0 ? clock.after(timeoutMs, () => timeIsUp.abort()) : () => {}
  const signal = AbortSignal.any([world.signal, timeIsUp.signal])
  const title = `${shortOf(resource)}/${name}`
  const onTrouble = () => world.say(`${title}: lost the connection to the cluster, reconnecting`)
  let uid: string | undefined
  let last: { line?: string; rollout?: Rollout } = {}
  let told = ""
  try {
    const states = follow<KubeObject>({ client, resource, name, namespace, clock, random, signal, onTrouble })
    for await (const objects of states) {
      const object = objects.get(keyOf({ name, namespace }))
      if (!object) {
        if (uid) return { name, of, is: "deleted", ...last }
        return { name, of, is: "missing", meant: await meantBy(name, client, of) }
      }
      // Deleted and created again in between: the object that was waited for is gone.
      if (uid && object.metadata.uid !== uid) return { name, of, is: "deleted", ...last }
      uid = object.metadata.uid ?? "unknown"
      const { is, ...seen } = of.read(object)
      last = seen
      const notYet = is && (await untilSeen(object))
      if (is && !notYet) return { name, of, is, ...seen }
      if (notYet) last = { ...seen, line: `${seen.line}: ${notYet}` }
      if (seen.line !== told) world.say(seen.line)
      told = seen.line
      if (timeoutMs === 0) break
    }
  } finally {
    cancel()
  }
  world.signal.throwIfAborted()
  return { name, of, is: "timed out", afterMs: timeoutMs, ...last }

  /** The other object is not watched: it is looked at a few times, in case that no event of this one follows. */
  async function untilSeen(object: KubeObject): Promise<string | undefined> {
    let why = await of.whyNotYet?.(object, client)
    for (let look = 0; why !== undefined && look < looksMost && timeoutMs > 0 && !signal.aborted; look++) {
      await sleep(clock, lookMs, signal).catch(() => {})
      const again = await client.get<KubeObject>(resource, { name, namespace }).catch(() => undefined)
      if (!again || of.read(again).is === undefined) return why
      why = await of.whyNotYet?.(again, client)
    }
    return why
  }
}

const looksMost = 10
const lookMs = 1000

const meantBy = async (name: string, client: Client, { resource, namespace }: Watched) =>
  closest(
    name,
    (await client.list(resource, { namespace })).items.map(({ metadata }) => metadata.name),
  )

/** The result as text: what happened, and what to do. */
export function sentence(ending: Ending): string {
  const { name, line, of } = ending
  const short = shortOf(of.resource)
  const where = of.namespace === undefined ? "" : ` in namespace ${of.namespace}`
  switch (ending.is) {
    case "complete":
    case "failed":
      return line!
    case "missing":
      return `there is no ${of.resource.kind} ${name}${where}${ending.meant ? `; did you mean ${short}/${ending.meant}?` : ""}`
    case "deleted":
      return `${short}/${name} was deleted while waiting for it`
    case "timed out": {
      const done = of.endsReady ? "ready" : "complete"
      const when = ending.afterMs === 0 ? `not ${done} now` : `not ${done} after ${formatDuration(ending.afterMs)}`
      return line ? `${when}: ${line}` : `${when}: the server never answered about ${short}/${name}`
    }
  }
}
