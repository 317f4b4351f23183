import {
  answer,
  arriveLate,
  cut,
  type Fault,
  isDecision,
  isWatch,
  loseAnswer,
  type Matcher,
  nth,
} from "#cluster-sim/faults/faults.ts"
import type { Clock } from "#runtime/clock.ts"
import type { Controller } from "#runtime/controller.ts"
import type { Process, ProcessOptions, World } from "#test/support/scenario.ts"

/** What happens to the first process, and to the one that follows it. */
export type Fate = ProcessOptions & { successor?: ProcessOptions }
export type Make = (strikes: Matcher, clock: Clock, next: Matcher) => Fate

/** Each fault, at a write. */
export const faults: Record<string, Make> = {
  "the process is killed before it": before => ({ dies: { before } }),
  "the process is killed after it": after => ({ dies: { after } }),
  "the connection breaks before it": at => ({ faults: [cut(at)] }),
  "its answer is lost": at => ({ faults: [loseAnswer(at)] }),
  "a conflict is the answer": at => ({ faults: [answer(at, 409, { reason: "Conflict" })] }),
  "too many requests": at => ({ faults: [answer(at, 429, { reason: "TooManyRequests", retryAfterSeconds: 2 })] }),
  "an internal error, and nothing was done": at => ({ faults: [answer(at, 500, { reason: "InternalError" })] }),
  "an internal error, and it was done": at => ({ faults: [doneAndFailed(at)] }),
  "forbidden for once": at => ({ faults: [answer(at, 403, { reason: "Forbidden" })] }),
  "it arrives a minute late": (at, clock) => ({ faults: [arriveLate(at, clock, 60_000)] }),
  "it arrives a minute late, and the process is killed": (at, clock, before) => ({
    faults: [arriveLate(at, clock, 60_000)],
    dies: { before },
  }),
  "the process is killed before it, and its successor soon after": before => ({
    dies: { before },
    successor: { dies: { after: nth(isDecision, 4) } },
  }),
}

const doneAndFailed = (strikes: Matcher): Fault => {
  const failed = answer(() => true, 500, { reason: "InternalError" })
  return next => ({
    ...next,
    async send(request) {
      if (!strikes(request)) return next.send(request)
      await loseAnswer(() => true)(next)
        .send(request)
        .catch(() => {})
      return failed(next).send(request)
    },
  })
}

/** From the first request that matches on, all. */
export function from(strikes: Matcher): Matcher {
  let hasBegun = false
  return request => {
    hasBegun ||= strikes(request)
    return hasBegun
  }
}

export const watches =
  (resource: string): Matcher =>
  request =>
    isWatch(request) && request.path.includes(`/${resource}`)

/** Runs a process and, whenever it is found dead, another, as a Deployment does. */
export function keepRunning(world: World, make: () => Controller, fate: Fate, { leaderElect = false } = {}): void {
  keepAlive(world.clock, options => world.run([make()], { ...options, leaderElect }), fate)
}

/** The same for a process that is started in a way of its own. Returns how to give it up. */
export function keepAlive(
  clock: Clock,
  run: (options: ProcessOptions) => Process,
  { successor = {}, ...options }: Fate = {},
  lookMs = 1000,
): () => Process {
  let isGivenUp = false
  const later = [successor]
  let process = run(options)
  const look = () => {
    if (isGivenUp) return
    if (process.isDead || process.exitCode !== undefined) process = run(later.pop() ?? {})
    clock.after(lookMs, look)
  }
  clock.after(lookMs, look)
  return () => {
    isGivenUp = true
    return process
  }
}
