import { createHmac } from "node:crypto"
import { expect, test } from "vitest"
import { callKey, eventMetadata, isYes, phaseFor, signatureOf } from "./hook.ts"

test("only 2xx is yes", () => {
  expect([200, 202, 204, 299].every(isYes)).toBe(true)
  expect([0, 199, 301, 304, 403, 500].some(isYes)).toBe(false)
})

test("three hooks are sent the phase as it is, the others Progressing", () => {
  expect(phaseFor("post-rollout", "Failed")).toBe("Failed")
  expect(phaseFor("confirm-rollout", "Waiting")).toBe("Waiting")
  expect(phaseFor("rollback", "WaitingPromotion")).toBe("WaitingPromotion")
  expect(phaseFor("confirm-promotion", "WaitingPromotion")).toBe("Progressing")
})

test("the keys of an event win over the user's", () => {
  expect(eventMetadata({ team: "shop", eventType: "mine" }, { message: "done", type: "Normal", at: 12 })).toEqual({
    team: "shop",
    eventMessage: "done",
    eventType: "Normal",
    timestamp: "12",
  })
})

test("a call has one key, and every other call another", () => {
  const keys = [
    callKey("run-1", "rollout", "load", 1),
    callKey("run-1", "rollout", "load", 2),
    callKey("run-1", "rollout", "loa", 1),
    callKey("run-1", "pre-rollout", "load", 1),
    callKey("run-2", "rollout", "load", 1),
  ]
  expect(new Set(keys).size).toBe(keys.length)
  expect(callKey("run-1", "rollout", "load", 1)).toBe(keys[0])
})

test("a signature is of the body and of the time", () => {
  const mac = createHmac("sha256", "secret").update('1700000000.{"a":1}').digest("hex")
  expect(signatureOf("secret", '{"a":1}', 1_700_000_000)).toBe(`t=1700000000,v1=${mac}`)
  expect(signatureOf("secret", '{"a":1}', 1_700_000_001)).not.toContain(mac)
})
