import { nextRestarts } from "#core/pods/restart.ts"
import { printable } from "#lib/text.ts"
import type { Client, WriteOptions } from "#runtime/client/client.ts"
import { isFailure } from "#runtime/client/errors.ts"
import type { Random } from "#runtime/random.ts"
import type { KubeObject } from "#runtime/resource.ts"
import { type Answer, connectionOf, Failure, type Input, type Run, UsageError, type World } from "../command.ts"
import { namespaceOf } from "../namespace.ts"
import { dryRunOf } from "../operate.ts"
import { requests, type Seen, sights } from "../restart/look.ts"
import { KnownRequests, readRequest } from "../restart/read.ts"
import { containersOf, type How, requestFor } from "../restart/request.ts"
import { fetchTarget, isPod, parseTarget } from "../restart/target.ts"
import {
  type Asked,
  beginning,
  done,
  failedWords,
  lateWords,
  type Progress,
  remaining,
  teller,
  unknownRestart,
  wouldDo,
} from "../restart/words.ts"
import { timeoutOf } from "./wait.ts"

export const run: Run = async (input, world) => {
  const asked = await askedIn(input, world)
  const client = await world.connect(connectionOf(input))
  try {
    return await restart(asked, { client, world })
  } finally {
    client.close()
  }
}

async function askedIn(input: Input, world: World): Promise<Asked> {
  const { options } = input
  const parsed = parseTarget(input.arguments[0]!)
  const maxUnavailable = Number(options.maxUnavailable)
  if (!Number.isInteger(maxUnavailable) || maxUnavailable < 1)
    throw new UsageError(`--max-unavailable: ${options.maxUnavailable} is not a number of pods: write 1 or more`)
  const continued = options.continue as string | undefined
  if (continued !== undefined && !/^[a-z0-9]{1,20}$/.test(continued))
    throw new UsageError(
      `--continue: ${printable(continued)} names no restart: write the word that the command printed`,
    )
  return {
    target: { ...parsed, namespace: await namespaceOf(input, world) },
    containers: [...new Set((options.container as string[] | undefined) ?? [])],
    maxUnavailable,
    id: continued ?? idFrom(world.random),
    isContinued: continued !== undefined,
    timeoutMs: options.timeout === undefined ? undefined : timeoutOf(input),
    isDryRun: dryRunOf(input),
    program: world.program,
    connection: connectionOf(input),
  }
}

/** Names a restart among the few of a namespace. Letters that make no words. */
const idFrom = (random: Random) =>
  Array.from({ length: 5 }, () => "bcdfghjklmnpqrstvwxz2456789"[Math.floor(random.next() * 27)]).join("")

type Doing = { client: Client; world: World }

/** Looks, decides and acts until it is over. What was begun goes on, whatever ends this loop. */
async function restart(asked: Asked, { client, world }: Doing): Promise<Answer> {
  const { target, id, timeoutMs } = asked
  const first = await fetchTarget(client, target)
  const how = { id, containers: asked.containers, minReadySeconds: minReadySecondsOf(first) }
  const known = new KnownRequests()
  const tell = teller(world)
  const forgiven = new Set<string>()
  const timeIsUp = new AbortController()
  const cancel = timeoutMs === undefined ? () => {} : world.clock.after(timeoutMs, () => timeIsUp.abort())
  const signal = AbortSignal.any([world.signal, timeIsUp.signal])
  let last: Progress | undefined
  try {
    for await (const seen of sights(target, first, { client, world, signal, id, known })) {
      const isFirst = last === undefined
      if (isFirst) for (const name of checked(seen, asked)) forgiven.add(name)
      const step = nextRestarts({ ...seen, maxUnavailable: asked.maxUnavailable, forgiven })
      const progress: Progress = { ...step, begun: [] }
      last = progress
      if (asked.isDryRun) return await tryOut(progress, seen, asked, how, client)
      if (isFirst && !step.isOver) world.say(beginning(progress, asked))
      for (const { pod, attempt } of step.begin) {
        const request = requestFor(seen.objects.get(pod.name)!, attempt, how)
        known.made(readRequest(await made(client, request), id, false))
        progress.begun.push(pod.name)
      }
      tell(progress, seen, isFirst)
      if (step.isOver && step.failed.length > 0) throw new Failure(failedWords(progress, seen, asked))
      if (step.isOver && step.done.length === 0 && isPod(target)) throw new Failure(`${target.title} was deleted`)
      if (step.isOver) return { text: `${done(progress, asked)}\n`, exitCode: 0 }
    }
  } catch (error) {
    if (last && !(error instanceof Failure)) await world.write(`${remaining(last, asked).join("\n")}\n`)
    throw error
  } finally {
    cancel()
  }
  if (!world.signal.aborted) throw new Failure(lateWords(last, asked))
  if (last) await world.write(`${remaining(last, asked).join("\n")}\n`)
  throw world.signal.reason
}

/** Refuses what cannot be restarted, and returns the requests of earlier attempts that failed. */
function checked({ objects, requests: all }: Seen, asked: Asked): string[] {
  for (const pod of objects.values()) containersOf(pod, asked.containers)
  const ours = all.filter(({ isOurs }) => isOurs)
  if (asked.isContinued && ours.length === 0) throw new Failure(unknownRestart(asked))
  return ours.filter(({ result }) => result === "Failed").map(({ name }) => name)
}

/** A write whose answer was lost may have been carried out: a request of this name is the one that was meant. */
async function made(client: Client, request: ReturnType<typeof requestFor>, options: WriteOptions = {}) {
  try {
    return await client.create<KubeObject>(requests, request, options)
  } catch (error) {
    if (isFailure(error, "Exists")) return request
    throw error
  }
}

/** The server checks the first request; the others differ in the pod alone. */
async function tryOut(progress: Progress, seen: Seen, asked: Asked, how: How, client: Client): Promise<Answer> {
  const [first] = [...progress.begin.map(({ pod }) => pod), ...progress.left]
  if (first) await made(client, requestFor(seen.objects.get(first.name)!, 1, how), { dryRun: true })
  return { text: `${wouldDo(progress, asked)}\n`, exitCode: 0 }
}

const minReadySecondsOf = (object: KubeObject): number =>
  (object as { spec?: { minReadySeconds?: number } }).spec?.minReadySeconds ?? 0
