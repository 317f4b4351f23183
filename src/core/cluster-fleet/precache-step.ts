import type { Precache } from "#api/v1alpha1/clusterupgrade/index.ts"
import { formatInstant, type Instant, parseInstant } from "#lib/instant.ts"
import { clip } from "#lib/text.ts"
import type { PrecacheLook } from "./precache-look.ts"
import { isFinal, type PrecacheAction, precacheStep, stateLimitMs } from "./precache-machine.ts"

export type PrecacheGiven = {
  precache: Precache | undefined
  /** What the last look showed; undefined: none, or it did not come about. */
  look: PrecacheLook | undefined
  specHash: string
  /** Pre-caching may begin now, and how long an attempt may take. */
  mayBegin: boolean
  deadlineSeconds: number
  maxAttempts: number
  /** A person has asked for another attempt since this one ended. */
  isAskedAgain: boolean
  now: Instant
}

export type PrecacheStepped = { precache: Precache | undefined; does?: PrecacheAction; lookAgainAt?: Instant }

/** Decides the next step of pre-caching on one cluster: within an attempt by the machine, and between attempts here. */
export function stepPrecache(given: PrecacheGiven): PrecacheStepped {
  const { precache, specHash, mayBegin, now } = given
  if (!precache || precache.specHash !== specHash) return mayBegin ? first(given, 1) : { precache }
  if (isFinal(precache.state)) return next(given, precache)
  if (precache.state === "NotStarted" && !mayBegin) return { precache }
  const since = parseInstant(precache.since) ?? now
  const limitMs = stateLimitMs[precache.state]
  const isTooLong = limitMs !== undefined && now >= since + limitMs
  const look = isTooLong ? overdue(precache) : given.look
  const step = precacheStep(precache.state, look?.observation)
  const lookAgainAt = limitMs === undefined ? {} : { lookAgainAt: since + limitMs }
  // A crash finds its own job: it is not cleaned up.
  const does = step.does === "CleanUp" && look?.isOwn ? undefined : step.does
  if (step.to === precache.state) return { precache, ...(does && { does }), ...(isTooLong ? {} : lookAgainAt) }
  const { cause: _, message: __, ...rest } = precache
  const at = formatInstant(now)
  return {
    precache: {
      ...rest,
      state: step.to,
      since: at,
      ...(look?.cause !== undefined && { cause: look.cause }),
      ...(look?.message !== undefined && step.to !== "Succeeded" && { message: clip(look.message, 512) }),
      ...(step.to === "Succeeded" && { succeededAt: at }),
    },
    ...(does && { does }),
    lookAgainAt: now,
  }
}

/** A state that lasts too long goes on as if its own observation had come: no state waits for ever. */
function overdue({ state }: Precache): PrecacheLook {
  if (state === "PreparingToStart") return { observation: "NoNsFoundOnSpoke", cause: "NamespaceStuck" }
  return { observation: "JobDeadline", message: "the job did not begin in half an hour" }
}

/** Final is final for an attempt. What ran out of time goes on in the next window; another spec begins again. */
function next(given: PrecacheGiven, precache: Precache): PrecacheStepped {
  const isResumed = precache.state === "PrecacheTimeout" && precache.attempt < given.maxAttempts
  const isAsked = precache.state !== "Succeeded" && given.isAskedAgain
  if (!given.mayBegin || !(isResumed || isAsked)) return { precache }
  return first(given, precache.attempt + 1)
}

const first = ({ specHash, deadlineSeconds, now }: PrecacheGiven, attempt: number): PrecacheStepped => ({
  precache: { state: "NotStarted", since: formatInstant(now), attempt, specHash, deadlineSeconds },
  lookAgainAt: now,
})
