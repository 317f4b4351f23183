import { describe, expect, test } from "vitest"
import { judgeObservation, judgeTrouble } from "./judge.ts"
import type { DeliveredObject, ObjectSeen, Observation, TroubleKind, Verdict } from "./transport.ts"

const object = (name: string): DeliveredObject => ({
  manifest: { apiVersion: "autoimagemanager.io/v1alpha1", kind: "ServiceImage", metadata: { name } },
  lifetime: "Kept",
  judge: { by: "Ready", expects: [] },
})
const present = (verdict: Verdict): ObjectSeen => ({ is: "Present", verdict, fields: {} })
const settled = present({ is: "Settled" })
const stalled = present({ is: "Stalled", reason: "AllFailed", message: "every pod crashes" })
const waiting = present({ is: "Waiting", reason: "RollingOut", message: "1 of 2" })
const differs = present({ is: "Differs", message: "it does not name this run" })

const cases: Record<string, { bundle?: Observation["bundle"]; seen: ObjectSeen[]; gives: string }> = {
  "all are ready": { seen: [settled, settled], gives: "Settled" },
  "one works": { seen: [settled, waiting], gives: "Working" },
  "one is not known": { seen: [settled, { is: "Unknown", message: "" }], gives: "Working" },
  "one was left out of the answer": { seen: [settled], gives: "Working" },
  "one is of another run": { seen: [settled, differs], gives: "Differs" },
  "one is missing": { seen: [{ is: "Absent" }, waiting], gives: "Absent" },
  "the bundle is missing": { bundle: "Absent", seen: [settled, settled], gives: "Absent" },
  "the bundle of an earlier run is leaving": {
    bundle: "Leaving",
    seen: [settled, settled],
    gives: "Unknown Upgrading",
  },
  "one cannot go on, and the other is not there": { seen: [{ is: "Absent" }, stalled], gives: "Failed Stalled" },
  "one is fought over": { seen: [settled, { is: "Contested", message: "by kubectl" }], gives: "Failed Contested" },
  "one is denied": {
    seen: [{ is: "Refused", reason: "AdmissionDenied", message: "no" }, settled],
    gives: "Failed AdmissionDenied",
  },
  "one does not fit its schema": {
    seen: [{ is: "Refused", reason: "Invalid", message: "no" }, settled],
    gives: "Failed Refused",
  },
  "one is being deleted": { seen: [settled, present({ is: "Leaving" })], gives: "Working" },
}

describe("one observation", () => {
  for (const [name, { bundle = "Present", seen, gives }] of Object.entries(cases))
    test(name, () => {
      const judged = judgeObservation({ at: 0, bundle, objects: seen }, [object("a"), object("b")])
      expect("cause" in judged ? `${judged.is} ${judged.cause}` : judged.is).toBe(gives)
    })
})

test("a failure on the way is none of the cluster", () => {
  const kinds: TroubleKind[] = ["Unreachable", "UnknownOutcome", "Throttled", "Conflict", "Forbidden", "UnknownCluster"]
  for (const is of kinds) expect(judgeTrouble({ is, message: "" }).is).toBe("Unknown")
  expect(judgeTrouble({ is: "Undeliverable", message: "" })).toMatchObject({ is: "Failed", cause: "Undeliverable" })
})
