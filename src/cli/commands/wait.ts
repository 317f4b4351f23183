import { closest } from "#lib/closest.ts"
import { formatDuration, parseDuration } from "#lib/duration.ts"
import type { Client } from "#runtime/client/client.ts"
import { type Answer, connectionOf, Failure, type Input, type Run, UsageError, type World } from "../command.ts"
import { follow } from "../follow.ts"
import { parseNamed, serviceImages } from "../kinds.ts"
import { progressLine } from "../render/status.ts"
import { type Rollout, rolloutOf, type Seen } from "../rollout.ts"

/** How the waiting for one rollout ended. */
export type Ending = { name: string; rollout?: Rollout | undefined } & (
  | { is: "complete" }
  | { is: "failed" } // halted or stalled: the rollout says why
  | { is: "missing"; meant?: string | undefined }
  | { is: "deleted" }
  | { is: "timed out"; afterMs: number }
)

export const run: Run = async (input, world) => {
  const { names, timeoutMs } = read(input)
  const client = await world.connect(connectionOf(input))
  try {
    return await waitUntilOver(names, { client, world, timeoutMs })
  } finally {
    client.close()
  }
}

/** What the shell gets of a wait, here and where a command is told to `--wait`. */
export async function waitUntilOver(names: readonly string[], waiting: Waiting): Promise<Answer> {
  const endings = await waitFor(names, waiting)
  const failed = endings.filter(({ is }) => is !== "complete")
  if (failed.length > 0) throw new Failure(failed.map(sentence).join("\n"))
  return { text: endings.map(ending => `${sentence(ending)}\n`).join(""), exitCode: 0 }
}

function read(input: Input) {
  const names = [...new Set(input.arguments.map(word => parseNamed(word).name))]
  return { names, timeoutMs: timeoutOf(input) }
}

export function timeoutOf({ options }: Input): number {
  const given = options.timeout as string
  const timeoutMs = parseDuration(given)
  if (timeoutMs === undefined)
    throw new UsageError(`--timeout: ${given} is no duration: write 90s, 10m or 1h30m, and 0 to look once`)
  return timeoutMs
}

type Waiting = {
  client: Client
  world: World
  timeoutMs: number
  /** How it has ended, if it has. */
  judge?: (rollout: Rollout) => "complete" | "failed" | undefined
}

function isOver({ state }: Rollout) {
  if (state === "Complete") return "complete"
  return state === "Halted" || state === "Stalled" || state === "RolledBack" ? "failed" : undefined
}

/** Waits for all of them, each for itself: one that fails does not hide how the others end. */
export const waitFor = (names: readonly string[], waiting: Waiting): Promise<Ending[]> =>
  Promise.all(names.map(name => waitForOne(name, waiting)))

async function waitForOne(name: string, { client, world, timeoutMs, judge = isOver }: Waiting): Promise<Ending> {
  const { clock, random } = world
  const timeIsUp = new AbortController()
  const cancel = timeoutMs > 0 ? clock.after(timeoutMs, () => timeIsUp.abort()) : () => {}
  const signal = AbortSignal.any([world.signal, timeIsUp.signal])
  const onTrouble = () => world.say(`si/${name}: lost the connection to the cluster, trying again`)
  let uid: string | undefined
  let rollout: Rollout | undefined
  let told = ""
  try {
    const states = follow<Seen>({ client, resource: serviceImages, name, clock, random, signal, onTrouble })
    for await (const objects of states) {
      const object = objects.get(name)
      if (!object)
        return uid ? { name, is: "deleted", rollout } : { name, is: "missing", meant: await meantBy(name, client) }
      // Deleted and made anew between two looks: what was waited for is gone all the same.
      if (uid && object.metadata.uid !== uid) return { name, is: "deleted", rollout }
      uid = object.metadata.uid ?? "unknown"
      rollout = rolloutOf(object)
      const is = judge(rollout)
      if (is) return { name, is, rollout }
      const line = progressLine(rollout)
      if (line !== told) world.say(line)
      told = line
      if (timeoutMs === 0) break
    }
  } finally {
    cancel()
  }
  world.signal.throwIfAborted()
  return { name, is: "timed out", afterMs: timeoutMs, rollout }
}

const meantBy = async (name: string, client: Client) =>
  closest(
    name,
    (await client.list(serviceImages)).items.map(({ metadata }) => metadata.name),
  )

/** The ending in words: what happened, and what there is to do. */
export function sentence(ending: Ending): string {
  const { name, rollout } = ending
  switch (ending.is) {
    case "complete":
      return progressLine(rollout!)
    case "failed":
      return progressLine(rollout!)
    case "missing":
      return `there is no ServiceImage ${name}${ending.meant ? `; did you mean si/${ending.meant}?` : ""}`
    case "deleted":
      return `si/${name} was deleted while waiting for it`
    case "timed out": {
      const when = ending.afterMs === 0 ? "not complete now" : `not complete after ${formatDuration(ending.afterMs)}`
      return rollout ? `${when}: ${progressLine(rollout)}` : `${when}: the server never answered about si/${name}`
    }
  }
}
