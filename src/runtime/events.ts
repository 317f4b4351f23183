import { formatInstant, formatMicroInstant } from "#lib/instant.ts"
import type { Client } from "./client/client.ts"
import { isFailure } from "./client/errors.ts"
import { type Clock, type Instant, sleep } from "./clock.ts"
import type { Logger } from "./log.ts"
import { jitter, type Random } from "./random.ts"
import { core, type KubeObject } from "./resource.ts"

/** Records events on the object itself. Repeats are counted on one Event instead of filling the list. */
export type EventRecorder = {
  record(
    object: KubeObject & { apiVersion: string; kind: string },
    event: { type: "Normal" | "Warning"; reason: string; message: string; action?: string },
  ): void
  /** Resolves when everything recorded so far was sent or given up. */
  flush(): Promise<void>
}

/**
 * core/v1 rather than events.k8s.io/v1: both are the same stored objects, but only core/v1 accepts `lastTimestamp` and
 * `count`. `kubectl describe` and `kubectl get events --sort-by=.lastTimestamp` order by them (events of the newer API
 * come in any order there), and a repeat may show its latest message. The fields of the newer API are filled as well,
 * so its readers miss nothing.
 */
export const events = core("events", "Event")

export type EventRecorderDeps = {
  client: Pick<Client, "create" | "patch">
  clock: Clock
  random: Random
  log: Logger
  /** Of this process. */
  identity: string
  /** The component named as the source of the events. */
  reporter?: string
}

/** The API server deletes an event an hour after it was last written; a later repeat begins a new one. */
const repeatWithinMs = 50 * 60_000
/** More messages than this under one reason of one object, within ten minutes, become one event (as in client-go). */
const similarMax = 10
const similarWithinMs = 10 * 60_000
/** Per object, as in client-go: 25 at once, then one in five minutes. No loop of ours can flood etcd. */
const burstPerObject = 25
const refillPerObjectMs = 5 * 60_000
/** Limits of what is remembered and of what waits. Beyond them the oldest is forgotten and the newest dropped. */
const rememberedMax = 4096
const pendingMax = 1024
const attemptsMax = 4
const messageMax = 1024

type Story = {
  key: string
  name: string
  namespace: string
  involved: { apiVersion: string; kind: string; name: string; namespace?: string; uid?: string }
  type: string
  reason: string
  action: string
  message: string
  count: number
  firstAt: Instant
  lastAt: Instant
  isOnServer: boolean
}

type CoreEvent = KubeObject & Record<string, unknown>

/** Best effort: never throws, never blocks the caller, and drops events that cannot be sent. */
export function createEventRecorder(deps: EventRecorderDeps): EventRecorder {
  const { clock, random, log, reporter = "autoimagemanager.io/controller" } = deps
  const stories = createRecent<Story>(rememberedMax)
  const messages = createRecent<{ since: number; distinct: Set<string> }>(rememberedMax)
  const budgets = createRecent<{ left: number; at: number }>(rememberedMax)
  const pending = new Set<Story>()
  let sending: Promise<void> | undefined

  /** The message under which this one is counted: its own, or the common one of many similar messages. */
  function topic(about: string, message: string): { topic: string; message: string } {
    const now = clock.monotonic()
    const known = messages.get(about)
    const recent = known && now - known.since < similarWithinMs ? known : { since: now, distinct: new Set<string>() }
    messages.set(about, recent)
    if (recent.distinct.has(message)) return { topic: message, message }
    if (recent.distinct.size >= similarMax) {
      return { topic: "(combined)", message: truncate(`(combined from similar events): ${message}`) }
    }
    recent.distinct.add(message)
    return { topic: message, message }
  }

  /** Whether this object may write another event now. */
  function mayWrite(object: string): boolean {
    const now = clock.monotonic()
    const budget = budgets.get(object) ?? { left: burstPerObject, at: now }
    const left = Math.min(burstPerObject, budget.left + (now - budget.at) / refillPerObjectMs)
    budgets.set(object, { left: left >= 1 ? left - 1 : left, at: now })
    return left >= 1
  }

  function record(...[object, event]: Parameters<EventRecorder["record"]>) {
    const { namespace, name, uid } = object.metadata
    const subject = [object.kind, namespace, name, uid].join("\n")
    const about = [subject, event.type, event.reason].join("\n")
    const { topic: told, message } = topic(about, truncate(event.message))
    const key = [about, told].join("\n")
    const now = clock.now()

    const known = stories.get(key)
    if (known && pending.has(known)) {
      Object.assign(known, { count: known.count + 1, lastAt: now, message }) // sent with the write that already waits
      return
    }
    if (!mayWrite(subject)) return
    if (pending.size >= pendingMax) {
      log.debug("dropping an event, too many wait", { reason: event.reason, object: name })
      return
    }
    const goesOn = known && now - known.lastAt < repeatWithinMs
    const story: Story = goesOn
      ? Object.assign(known, { count: known.count + 1, lastAt: now, message })
      : {
          key,
          name: eventName(name, random),
          namespace: namespace ?? "default", // where events of cluster-scoped objects live
          involved: {
            apiVersion: object.apiVersion,
            kind: object.kind,
            name,
            ...(namespace && { namespace }),
            ...(uid && { uid }),
          },
          type: event.type,
          reason: truncate(event.reason, 128),
          action: truncate(event.action ?? event.reason, 128),
          message,
          count: 1,
          firstAt: now,
          lastAt: now,
          isOnServer: false,
        }
    stories.set(key, story)
    pending.add(story)
    sending ??= sendAll()
  }

  async function sendAll() {
    await Promise.resolve() // events of the same turn are sent together
    for (const story of pending) {
      pending.delete(story)
      await send(story)
    }
    sending = undefined
  }

  async function send(story: Story) {
    for (let attempt = 1; ; attempt++) {
      try {
        await write(story)
        return
      } catch (error) {
        const mayHelp = isFailure(error, "Throttled", "Unreachable", "UnknownOutcome")
        if (!mayHelp || attempt === attemptsMax) {
          // A namespace being deleted refuses events, and a deposed leader may not write: neither is worth a warning.
          log.debug("giving up an event", { reason: story.reason, object: story.involved.name, error })
          return
        }
        await sleep(clock, jitter(random, Math.min(error.retryAfterMs ?? 0, 10_000) || 250 * 2 ** attempt))
      }
    }
  }

  async function write(story: Story) {
    const { name, namespace } = story
    if (story.isOnServer) {
      try {
        const body = { count: story.count, lastTimestamp: formatInstant(story.lastAt), message: story.message }
        await deps.client.patch(events, { namespace, name }, { type: "merge", body }, { deadlineMs: 10_000 })
        return
      } catch (error) {
        if (!isFailure(error, "NotFound")) throw error // it expired or was deleted: a new one is created
        story.name = eventName(story.involved.name, random)
      }
    }
    try {
      await deps.client.create(events, eventOf(story, reporter, deps.identity), { deadlineMs: 10_000 })
    } catch (error) {
      if (!isFailure(error, "Exists")) throw error // an earlier attempt whose answer was lost
    }
    story.isOnServer = true
  }

  return {
    record(object, event) {
      try {
        record(object, event)
      } catch (error) {
        log.debug("dropping an event", { error }) // for example an object without metadata; its reconcile must not fail
      }
    },
    async flush() {
      while (sending) await sending
    },
  }
}

const eventOf = (story: Story, reporter: string, identity: string): CoreEvent => ({
  apiVersion: "v1",
  kind: "Event",
  metadata: { name: story.name, namespace: story.namespace },
  involvedObject: story.involved,
  type: story.type,
  reason: story.reason,
  action: story.action,
  message: story.message,
  count: story.count,
  firstTimestamp: formatInstant(story.firstAt),
  lastTimestamp: formatInstant(story.lastAt),
  eventTime: formatMicroInstant(story.firstAt),
  reportingComponent: reporter,
  reportingInstance: truncate(identity, 128),
  source: { component: reporter },
})

/** `<object>.<random>`; only the random part where the object's name is not valid for an Event (`system:node`). */
function eventName(object: string, random: Random): string {
  const unique = random.uuid().replaceAll("-", "").slice(0, 16)
  const name = object.slice(0, 230).replace(/[^a-z0-9]+$/, "")
  return /^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$/.test(name) ? `${name}.${unique}` : unique
}

/** The limit counts bytes. Cuts between characters, and marks the cut. */
function truncate(words: string, max = messageMax): string {
  const bytes = Buffer.from(words)
  if (bytes.length <= max) return words
  const half = /\ufffd$/ // a letter of which only the beginning fits
  return `${bytes.toString("utf8", 0, max - 3).replace(half, "")}…`
}

/** The last `max` that were used. */
function createRecent<T>(max: number) {
  const entries = new Map<string, T>()
  return {
    get: (key: string) => entries.get(key),
    set(key: string, value: T) {
      entries.delete(key)
      entries.set(key, value)
      if (entries.size > max) entries.delete(entries.keys().next().value!)
    },
  }
}
