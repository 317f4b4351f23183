import type { AlertProvider } from "#api/v1alpha1/alertprovider/index.ts"
import type { Alert, Canary, Webhook } from "#api/v1alpha1/canary/index.ts"
import { alertFor, isMeantFor, type Message } from "#core/canary/alert.ts"
import { eventMetadata, isYes, signatureOf } from "#core/canary/hook.ts"
import { notShared, placeOf } from "#core/canary/sharing.ts"
import type { Egress, EgressRequest } from "#egress/index.ts"
import { createLimiter } from "#lib/limiter.ts"
import { sleep } from "#runtime/clock.ts"
import type { Wiring } from "#runtime/controller.ts"
import type { Held } from "#runtime/kind-controller.ts"
import type { Secrets } from "../secrets.ts"
import type { Sharing } from "../sharing.ts"
import { canaryMetrics } from "./metrics.ts"

export type CanaryMessage = Message & {
  /** The Canary's present phase and the checksum of its run: event hooks are sent them. */
  readonly phase: string
  readonly checksum: string
  /** About a hook with muteAlert: event hooks are sent it, people are not. */
  readonly isMuted?: boolean
}

export type Alerts = {
  /** Sends to the alerts of the Canary that the message is meant for, and to its event hooks. Returns at once. */
  send(canary: Canary, message: CanaryMessage): void
  /** Resolves when all has been sent or given up. */
  drain(): Promise<void>
}

export type AlertsDeps = {
  egress: Egress
  providers: { get(key: string): Held<AlertProvider> | undefined }
  secrets: Secrets
  sharing: Sharing
}

const atOnce = { all: 32, owner: 4, waiting: 128 }
const attempts = 3
const pauseMs = 2000
const sendMs = 10_000

/**
 * Tells people and event hooks. A failing alert delays nothing: it is counted, logged and recorded as an Event with the
 * reason AlertFailed. Answers are never quoted, because addresses of alerts hold tokens.
 */
export function createAlerts(
  wiring: Pick<Wiring, "clock" | "signal" | "log" | "events" | "metrics">,
  deps: AlertsDeps,
): Alerts {
  const { clock, signal, log, events } = wiring
  const inTurn = createLimiter(atOnce).run
  const sent = wiring.metrics?.counter({ name: "canary_alerts_total", ...canaryMetrics.canary_alerts_total })
  // A rate needs a first zero.
  for (const result of ["sent", "failed"]) sent?.add({ result }, 0)
  const open = new Set<Promise<void>>()

  /** What could not be sent, or undefined. */
  async function deliver(request: EgressRequest): Promise<string | undefined> {
    let trouble = ""
    for (let attempt = 1; attempt <= attempts; attempt++) {
      if (attempt > 1) await sleep(clock, pauseMs, signal)
      const reply = await deps.egress.request({ ...request, signal })
      if (reply.ok && isYes(reply.status)) return undefined
      trouble = reply.ok ? `it answered ${reply.status}` : reply.message
      const mayPass = reply.ok ? reply.status >= 500 || reply.status === 429 : passing.has(reply.class)
      if (!mayPass) break
    }
    return trouble
  }

  function begin(canary: Canary, name: string, prepare: () => Promise<EgressRequest | Problem>): void {
    const owner = canary.metadata.namespace ?? ""
    const work = inTurn({ owner, signal }, async () => {
      const request = await prepare()
      return "problem" in request ? request.problem : await deliver(request)
    })
      .catch(() => "too many other alerts wait, or an object that it needs could not be read")
      .then(trouble => {
        if (signal.aborted) return
        sent?.add({ result: trouble === undefined ? "sent" : "failed" })
        if (trouble === undefined) return
        log.warn("alert failed", { canary: `${owner}/${canary.metadata.name}`, alert: name, why: trouble })
        events.record(canary, { type: "Warning", reason: "AlertFailed", message: `alert ${name}: ${trouble}` })
      })
      .finally(() => open.delete(work))
    open.add(work)
  }

  return {
    send(canary, message) {
      const { alerts, webhooks } = canary.spec.analysis
      for (const alert of alerts)
        if (!message.isMuted && isMeantFor(message.severity, alert.severity))
          begin(canary, alert.name, () => alertRequest(deps, canary, alert, message))
      const at = clock.now()
      for (const hook of webhooks)
        if (hook.type === "event") begin(canary, hook.name, () => eventRequest(deps, canary, hook, message, at))
    },
    async drain() {
      await Promise.all(open)
    },
  }
}

const passing = new Set(["Unreachable", "Timeout", "Busy"])

type Problem = { problem: string }

async function alertRequest(
  { providers, secrets, sharing }: AlertsDeps,
  canary: Canary,
  alert: Alert,
  message: CanaryMessage,
): Promise<EgressRequest | Problem> {
  const own = canary.metadata.namespace ?? ""
  const place = placeOf(alert.providerRef, own)
  const isForeign = place.namespace !== own
  if (isForeign && !(await sharing.isShared(place.namespace))) return { problem: notShared("AlertProvider", place) }
  const provider = providers.get(`${place.namespace}/${place.name}`)?.object
  if (!provider)
    return {
      problem: `AlertProvider ${place.name} does not exist in ${place.namespace}: create it, or correct providerRef`,
    }
  const { spec } = provider
  if (spec.proxy) return { problem: "proxy is not supported: leave it out" }
  const secret = spec.secretRef && (await secrets.read(place.namespace, spec.secretRef.name))
  if (secret && !secret.ok) return { problem: isForeign ? foreign : secret.message }
  const textOf = (key: string) => secret?.keys.get(key)?.toString("utf8").trim()
  const request = alertFor(
    spec,
    spec.address ?? textOf("address") ?? "",
    { name: canary.metadata.name, namespace: own },
    message,
  )
  if (!request)
    return {
      problem: isForeign
        ? foreign
        : "the AlertProvider has no address: write address, or the key `address` of its Secret",
    }
  const token = textOf("token")
  return {
    ...request,
    namespace: place.namespace,
    onBehalfOf: own,
    method: "POST",
    headers: { "content-type": "application/json", ...(token && { authorization: `Bearer ${token}` }) },
    timeoutMs: sendMs,
  }
}

const foreign = "the AlertProvider cannot be used: its own status says why"

async function eventRequest(
  { secrets }: AlertsDeps,
  canary: Canary,
  hook: Webhook,
  message: CanaryMessage,
  at: number,
): Promise<EgressRequest | Problem> {
  const { name, namespace = "" } = canary.metadata
  const { phase, checksum, text, severity } = message
  const type = severity === "info" ? "Normal" : "Warning"
  const metadata = eventMetadata(hook.metadata, { message: text, type, at })
  const body = JSON.stringify({ name, namespace, phase, checksum, metadata })
  const secret = hook.secretRef && (await secrets.read(namespace, hook.secretRef.name))
  if (secret && !secret.ok) return { problem: secret.message }
  const key = secret?.keys.get("key")
  if (secret && !key?.length)
    return { problem: `Secret ${hook.secretRef!.name} has no key \`key\`: write one, or leave secretRef out` }
  return {
    namespace,
    url: hook.url,
    method: "POST",
    headers: {
      "content-type": "application/json",
      ...(key && { "aim-signature": signatureOf(key, body, Math.floor(at / 1000)) }),
    },
    body,
    timeoutMs: sendMs,
    isUnchecked: hook.disableTLS,
  }
}
