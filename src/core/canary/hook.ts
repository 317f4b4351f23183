import { createHash, createHmac } from "node:crypto"

export type HookType =
  | "confirm-rollout"
  | "pre-rollout"
  | "rollout"
  | "confirm-traffic-increase"
  | "confirm-promotion"
  | "post-rollout"
  | "rollback"
  | "event"

/** What a hook is sent, field by field as Flagger sends it. */
export type HookPayload = {
  readonly name: string
  readonly namespace: string
  readonly phase: string
  readonly checksum: string
  readonly metadata?: Readonly<Record<string, string>>
}

/** The phase that a hook is sent: some are told of the outcome or of the present phase, the others of progress. */
export function phaseFor(type: HookType, present: string): string {
  return type === "confirm-rollout" || type === "rollback" || type === "post-rollout" ? present : "Progressing"
}

/** What an event hook is sent besides: the user's keys stay where they do not collide. */
export const eventMetadata = (
  own: Readonly<Record<string, string>> | undefined,
  event: { message: string; type: "Normal" | "Warning"; at: number },
): Record<string, string> => ({
  ...own,
  eventMessage: event.message,
  eventType: event.type,
  timestamp: String(event.at),
})

/** Only 2xx is yes. Flagger takes 203 and above for no, and 3xx for an error with the body as its text. */
export const isYes = (status: number): boolean => status >= 200 && status < 300

/**
 * The same for each attempt of a call, and another for another call: what receives it can tell a call that was repeated
 * after a lost answer from a new one.
 */
export const callKey = (runId: string, type: HookType, name: string, round: number): string =>
  createHash("sha256")
    .update(JSON.stringify([runId, type, name, round]))
    .digest("hex")
    .slice(0, 32)

/**
 * Signs a body together with the time at which it was sent, so that an old call cannot be sent again later. The form is
 * `t=SECONDS,v1=HEX`, as receivers of signed hooks know it.
 */
export function signatureOf(secret: Uint8Array | string, body: string, atSeconds: number): string {
  const mac = createHmac("sha256", secret).update(`${atSeconds}.${body}`).digest("hex")
  return `t=${atSeconds},v1=${mac}`
}
