import type { Reason, Webhook } from "#api/v1alpha1/canary/index.ts"
import { callKey, type HookPayload, isYes, phaseFor, signatureOf } from "#core/canary/hook.ts"
import { type Egress, type EgressFailure, excerptOf } from "#egress/index.ts"
import { parseDuration } from "#lib/duration.ts"
import type { Instant } from "#lib/instant.ts"
import { createLimiter } from "#lib/limiter.ts"
import { sleep } from "#runtime/clock.ts"
import type { Wiring } from "#runtime/controller.ts"
import { createQuestions } from "#runtime/questions.ts"
import type { Secrets } from "./secrets.ts"

/** One call of a hook in a run. */
export type HookCall = {
  /** What is looked at again when it has answered. */
  readonly key: string
  /** The object that names the hook, and the namespace on whose behalf it is called. */
  readonly caller: { readonly name: string; readonly namespace: string; readonly uid: string }
  readonly hook: Called
  /** All attempts are made within it. */
  readonly intervalMs: number
  readonly runId: string
  readonly round: number
  /** The present phase of the object. */
  readonly phase: string
  readonly checksum: string
}

/** What a call needs of a hook. */
export type Called = Pick<Webhook, "name" | "url" | "timeout" | "retries" | "disableTLS" | "metadata" | "secretRef"> &
  Partial<Pick<Webhook, "type">>

export type HookAnswer = {
  readonly yes: boolean
  readonly why: string
  readonly at: Instant
  /** It did not say no: it could not be asked, or did not answer. */
  readonly isFailure: boolean
  /** A person must act. */
  readonly reason?: Reason
  /** The call was never made: too many others wait, or the API server did not give its Secret. */
  readonly isUncalled?: true
}

export type Hooks = {
  /** What the hook said to this call, or undefined while it is under way. The object is enqueued when it has answered. */
  answerOf(call: HookCall): HookAnswer | undefined
  /** Whether any call is under way. */
  readonly areOpen: boolean
}

export type HooksDeps = { egress: Egress; secrets: Secrets }

/** Calls of one namespace that are under way. */
const atOnce = { all: 64, owner: 6, waiting: 512 }
const callMs = { least: 10_000, most: 600_000 }
const rememberMs = 600_000
const callsMost = 10_000
/** Between two attempts; it doubles. */
const pauseMs = { first: 1000, most: 30_000 }

type Said = Omit<HookAnswer, "at">

/** Calls hooks beside the loop: one that hangs delays no other object. */
export function createHooks(wiring: Pick<Wiring, "clock" | "enqueue" | "signal">, deps: HooksDeps): Hooks {
  const { clock, signal } = wiring
  const inTurn = createLimiter(atOnce).run
  const failed = (): Said => ({
    ...failure("it could not be called: too many other calls wait, or its Secret cannot be read"),
    isUncalled: true,
  })
  const questions = createQuestions<Said>({ clock, rememberMs, most: callsMost, failed })

  /** All attempts of a call, within the interval. */
  async function call(asked: HookCall): Promise<Said> {
    const late = new AbortController()
    const ms = Math.max(callMs.least, Math.min(callMs.most, asked.intervalMs))
    const cancel = clock.after(ms, () => late.abort())
    const until = AbortSignal.any([late.signal, signal])
    let said = failure(`it did not answer within the interval of ${ms / 1000} s`)
    try {
      for (let attempt = 1; attempt <= asked.hook.retries + 1; attempt++) {
        if (attempt > 1) await sleep(clock, Math.min(pauseMs.most, pauseMs.first * 2 ** (attempt - 2)), until)
        const { isFinal, ...outcome } = await tryOnce(deps, asked, { attempt, now: clock.now(), signal: until })
        said = outcome
        if (isFinal) break
      }
    } catch (error) {
      if (!until.aborted) throw error
    } finally {
      cancel()
    }
    return said
  }

  return {
    answerOf(asked) {
      // The end of the process ends its calls, which says nothing of what was called. The next process calls again.
      if (signal.aborted) return undefined
      const { key, caller } = asked
      const id = `${key} ${caller.uid} ${keyOf(asked)}`
      const answer = questions.get(id)
      const owner = caller.namespace
      if (!answer)
        questions.ask(
          id,
          () => inTurn({ owner, signal }, () => call(asked)),
          () => wiring.enqueue(key),
        )
      return answer && { ...answer.said, at: answer.at }
    },
    get areOpen() {
      return questions.areOpen
    },
  }
}

/** Two hooks may have one type and one name: what receives both must be able to tell their calls apart. */
const keyOf = ({ runId, round, hook: { type, name, url, metadata } }: HookCall) =>
  callKey(runId, type || "rollout", JSON.stringify([name, url, metadata ?? {}]), round)

const failure = (why: string, reason?: Reason): Said => ({
  yes: false,
  why,
  isFailure: true,
  ...(reason && { reason }),
})

type Attempt = { attempt: number; now: Instant; signal: AbortSignal }

async function tryOnce(
  { egress, secrets }: HooksDeps,
  call: HookCall,
  { attempt, now, signal }: Attempt,
): Promise<Said & { isFinal: boolean }> {
  const {
    caller: { name, namespace },
    hook,
  } = call
  const payload: HookPayload = {
    name,
    namespace,
    phase: phaseFor(hook.type || "rollout", call.phase),
    checksum: call.checksum,
    ...(hook.metadata && { metadata: hook.metadata }),
  }
  const body = JSON.stringify(payload)
  const signature = hook.secretRef && (await signed(secrets, namespace, hook.secretRef.name, body, now))
  if (typeof signature === "object") return { ...signature, isFinal: true }
  const reply = await egress.request({
    namespace,
    url: hook.url,
    method: "POST",
    headers: {
      "content-type": "application/json",
      "aim-call": keyOf(call),
      "aim-attempt": String(attempt),
      ...(signature !== undefined && { "aim-signature": signature }),
    },
    body,
    timeoutMs: parseDuration(hook.timeout) ?? 10_000,
    isUnchecked: hook.disableTLS,
    signal,
  })
  if (!reply.ok) return unanswered(reply)
  if (isYes(reply.status)) return { yes: true, why: `answered ${reply.status}`, isFailure: false, isFinal: true }
  // A signature is a credential for as long as its time stamp is new.
  const excerpt = signature === undefined ? excerptOf(reply.body) : ""
  const mayPass = reply.status >= 500 || reply.status === 429
  const why = `answered ${reply.status}${excerpt && `: ${excerpt}`}`
  return { yes: false, why, isFailure: mayPass, isFinal: !mayPass }
}

async function signed(
  secrets: Secrets,
  namespace: string,
  name: string,
  body: string,
  now: Instant,
): Promise<string | Said> {
  const secret = await secrets.read(namespace, name)
  if (!secret.ok) return failure(secret.message, secret.reason)
  const key = secret.keys.get("key")
  // A call that is not signed, or signed with nothing, would be a forged one to what receives it.
  if (!key?.length)
    return failure(`Secret ${name} has no key \`key\`: write one, or leave secretRef out`, "SecretMissing")
  return signatureOf(key, body, Math.floor(now / 1000))
}

function unanswered({ class: kind, message }: EgressFailure): Said & { isFinal: boolean } {
  if (kind === "ForbiddenAddress") return { ...failure(message, "AddressForbidden"), isFinal: true }
  if (kind === "InvalidRequest") return { ...failure(message, "InvalidSpec"), isFinal: true }
  return { ...failure(message), isFinal: false }
}
