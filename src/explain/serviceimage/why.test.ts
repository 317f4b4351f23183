import { describe, expect, test } from "vitest"
import type { Reason, ServiceImageSpecInput, ServiceImageStatus } from "#api/v1alpha1/serviceimage/index.ts"
import { formatApproval } from "#core/fleet/approval.ts"
import { formatInstant, type Instant } from "#lib/instant.ts"
import { type KubeObject, keyOf } from "#runtime/resource.ts"
import {
  brokenPod,
  crashingPod,
  type DicomWords,
  dicom,
  inQueue,
  inventoryOf,
  namespace,
  serviceImage,
  start,
  target,
  v1,
  v2,
  v3,
} from "../test-inventory.ts"
import { survey } from "./survey.ts"
import { whyObject, whyRollout } from "./why.ts"

const [second, minute] = [1000, 60_000]

type Case = {
  /** The object in question; `a` by default. */
  who?: string
  spec?: Partial<ServiceImageSpecInput>
  annotations?: Record<string, string>
  dicoms?: Record<string, DicomWords>
  others?: readonly KubeObject[]
  /** What the controller wrote last; by default what it would have written at the start. */
  status?: (first: ServiceImageStatus) => ServiceImageStatus | undefined
  now?: Instant
  reason: Reason
  since?: Instant
  says: readonly string[]
}

const early = { tier: "early" }
const stamped = { image: v2, decided: {} }
const well = { ...early, ...stamped }
/** Before the rollout in question: every object on v1. */
const calm: Record<string, DicomWords> = { a: early, b: early, c: {} }
const steps = (soakSeconds: number) => [{ upgradeTier: "", steps: [{ percent: 50, soakSeconds }, { percent: 100 }] }]
// Hashes of names decide which objects are in the first half; these are, and are not.
const four = inQueue("p", "q", "r", "s")

const cases: Record<string, Case> = {
  "up to date": {
    dicoms: { ...calm, a: well },
    reason: "UpToDate",
    since: start + 10 * second,
    says: [`Dicom shop/a has ${v2}, as si/web wants it`, "tier early (by its label upgrade-tier), priority 1"],
  },
  "stamped a moment ago, its pods are on their way": {
    dicoms: { ...calm, a: { ...well, isUpToDate: false } },
    now: start + minute,
    reason: "WaitingForHealth",
    since: start + 10 * second,
    says: ["is not up to date", "until 2026-01-01T00:10:10Z (9m10s left)", "the others go on"],
  },
  "stamped, and its failure would halt the rollout": {
    dicoms: { ...calm, a: { ...well, isUpToDate: false, spec: { failureHaltsUpdate: true } } },
    now: start + minute,
    reason: "WaitingForHealth",
    says: ["halts the rollout"],
  },
  "stamped, and its pod cannot pull the image": {
    dicoms: { ...calm, a: { ...well, isUpToDate: false } },
    others: [brokenPod("a", v2, "manifest unknown")],
    now: start + minute,
    reason: "ImagePullFailed",
    says: ["ImagePullFailed: manifest unknown.", "9m10s left"],
  },
  "stamped, and no object can pull: the rollout has halted before its deadline": {
    dicoms: { a: { ...well, isUpToDate: false } },
    others: [brokenPod("a", v2, "manifest unknown")],
    now: start + minute,
    reason: "ImagePullFailed",
    says: ["The rollout has halted: tier early: none of 1 objects can pull", "then it counts as failed."],
  },
  "up to date, and that has yet to last": {
    spec: { tiers: [{ upgradeTier: "early", priority: 1, settleSeconds: 60 }, { upgradeTier: "" }] },
    dicoms: { ...calm, a: well },
    now: start + 30 * second,
    reason: "Settling",
    says: ["and is up to date", "It counts as done in 40s", "for 1m without a break (settleSeconds)"],
  },
  "stamped, and it keeps crashing": {
    dicoms: { ...calm, a: { ...well, isUpToDate: false } },
    others: [crashingPod("a", v2, start + 30 * second)],
    now: start + minute,
    reason: "CrashLoop",
    says: ["CrashLoop: container web exited with 3 (Error): no database.", "does not wait for the deadline"],
  },
  "stamped, and all of them keep crashing": {
    dicoms: { a: { ...well, isUpToDate: false } },
    others: [crashingPod("a", v2, start + 30 * second)],
    now: start + minute,
    reason: "CrashLoop",
    says: ["does not wait for the deadline", "The rollout has halted: tier early: all 1 objects that started"],
  },
  "was up to date, and is not any more": {
    dicoms: { ...calm, a: { ...well, isUpToDate: false, unwellSince: start + 20 * minute } },
    now: start + 21 * minute,
    reason: "WaitingForHealth",
    since: start + 20 * minute,
    says: [`${v2} from si/web, was up to date until ${formatInstant(start + 20 * minute)}`, "(9m left)"],
  },
  "failed, and that is ignored": {
    dicoms: { ...calm, a: { ...well, isUpToDate: false } },
    others: [brokenPod("a", v2, "manifest unknown")],
    now: start + 11 * minute,
    reason: "IgnoredFailure",
    since: start + 10 * minute + 10 * second,
    says: ["manifest unknown", "counts as ImagePullFailed", "goes on without it"],
  },
  "failed, and that halts": {
    dicoms: { ...calm, a: { ...well, isUpToDate: false, spec: { failureHaltsUpdate: true } } },
    now: start + 11 * minute,
    reason: "FailureHaltsUpdate",
    says: ["it says failureHaltsUpdate: no object after it is touched"],
  },
  "its turn, and it is the next": {
    reason: "RollingOut",
    says: [`has ${v1} and is to get ${v2} from si/web`, "stamped next"],
  },
  "a higher priority comes first": {
    who: "c",
    dicoms: { ...calm, a: { ...well, isUpToDate: false } },
    now: start + minute,
    reason: "WaitingForPriority",
    since: start,
    says: [
      "the default tier (it has no label upgrade-tier), priority 0",
      "It waits for tier early of priority 1",
      "0 of 2 up to date",
    ],
  },
  "a label that names no tier": {
    who: "c",
    dicoms: { ...calm, c: { tier: "nightly" } },
    reason: "WaitingForPriority",
    says: ["its label upgrade-tier=nightly names no other tier"],
  },
  "the tier waits for a person": {
    spec: { tiers: [{ upgradeTier: "early", priority: 1, requireApproval: true }] },
    reason: "AwaitingApproval",
    since: start,
    says: ["a person to approve operation g1: aim approve si/web early"],
  },
  "a person has approved": {
    spec: { tiers: [{ upgradeTier: "early", priority: 1, requireApproval: true }] },
    annotations: { "autoimagemanager.io/approved": formatApproval({ operation: "g1", tiers: ["early"] }) },
    reason: "RollingOut",
    says: ["stamped next"],
  },
  "a higher priority, and then a person": {
    who: "c",
    spec: {
      tiers: [
        { upgradeTier: "early", priority: 1 },
        { upgradeTier: "", requireApproval: true },
      ],
    },
    reason: "WaitingForPriority",
    says: [
      "It waits for tier early",
      'Then its tier waits for a person to approve operation g1: aim approve si/web ""',
    ],
  },
  "it is the only one left: if it fails, nothing goes on": {
    spec: { tiers: [] },
    dicoms: { a: { ...stamped, isUpToDate: false } },
    now: start + minute,
    reason: "WaitingForHealth",
    says: ["then it counts as failed and, because no other object of its step is left, halts the rollout."],
  },
  "its failure would spend the budget": {
    spec: { tiers: [{ upgradeTier: "early", failureBudget: 0 }, { upgradeTier: "" }] },
    dicoms: { ...calm, a: { ...well, isUpToDate: false } },
    now: start + minute,
    reason: "WaitingForHealth",
    says: ["then it counts as failed and halts the rollout: failureBudget is 0."],
  },
  "it waits, and the rollout is paused": {
    spec: { paused: true },
    dicoms: { ...calm, a: { ...well, isUpToDate: false } },
    now: start + minute,
    reason: "WaitingForHealth",
    says: ["then it counts as failed."],
  },
  "its namespace cannot be written to": {
    status: first => ({
      ...first,
      tierStatus: first.tierStatus.map(tier => ({
        ...tier,
        failures: [
          {
            reason: "WriteFailed",
            scope: "All",
            count: 1,
            message: "failed calling webhook 'x': EOF",
            examples: ["shop/a"],
          },
        ],
      })),
    }),
    reason: "WriteFailed",
    says: ["It cannot be written: failed calling webhook 'x': EOF. It is tried again, less and less often"],
  },
  "an earlier step is under way": {
    who: four[3]!,
    spec: { tiers: steps(0) },
    dicoms: { [four[0]!]: { ...stamped, isUpToDate: false }, [four[3]!]: {} },
    now: start + minute,
    reason: "WaitingForHealth",
    says: ["with the step to 100%, after 50%", "The step to 50% is under way", "waiting for shop/"],
  },
  "an earlier step soaks": {
    who: four[3]!,
    spec: { tiers: steps(3600) },
    dicoms: { [four[0]!]: stamped, [four[3]!]: {} },
    status: first => ({
      ...first,
      tierStatus: first.tierStatus.map(tier => ({
        ...tier,
        step: { percent: 50, upToDateAt: formatInstant(start + 20 * second) },
      })),
    }),
    now: start + minute,
    reason: "Soaking",
    since: start + 20 * second,
    says: ["soaks until 2026-01-01T01:00:20Z (59m20s left); then comes 100%"],
  },
  "an earlier step is judged": {
    who: four[3]!,
    spec: {
      analysisNamespace: "shop",
      tiers: [
        {
          ...steps(0)[0]!,
          analysis: {
            interval: "1m",
            threshold: 3,
            metrics: [{ name: "errors", templateRef: { name: "errors" }, thresholdRange: { max: 5 } }],
          },
        },
      ],
    },
    dicoms: { [four[0]!]: stamped, [four[3]!]: {} },
    status: first => ({
      ...first,
      tierStatus: first.tierStatus.map(tier => ({
        ...tier,
        step: { percent: 50, upToDateAt: formatInstant(start + 20 * second) },
      })),
    }),
    now: start + minute,
    reason: "Analysing",
    since: start + 20 * second,
    says: [
      "The step to 50% is up to date and is judged every 1m: judged at 2026-01-01T00:01:20Z.",
      "When a round is good, the step to 100% begins; 3 failed checks halt the rollout.",
    ],
  },
  "first in the queue where its step would have no object": {
    who: four[2]!,
    spec: { tiers: [{ upgradeTier: "", steps: [{ percent: 1, soakSeconds: 3600 }, { percent: 100 }] }] },
    dicoms: { [four[2]!]: stamped, [four[3]!]: {} },
    now: start + minute,
    reason: "UpToDate",
    says: ["first in the queue, for the step to 1%"],
  },
  "as many as may be on their way are": {
    who: four[3]!,
    spec: { tiers: [{ upgradeTier: "", maxConcurrent: 1 }] },
    dicoms: { [four[0]!]: { ...stamped, isUpToDate: false }, [four[2]!]: {}, [four[3]!]: {} },
    now: start + minute,
    reason: "WaitingForConcurrency",
    says: ["At most 1 of its tier", "maxConcurrent 1", "1 object of it is before this one"],
  },
  "the pace lets others go first": {
    who: four[3]!,
    spec: { tiers: [], pace: { podsPerSecond: 1 } },
    dicoms: { [four[0]!]: {}, [four[1]!]: {}, [four[3]!]: {} },
    reason: "WaitingForPace",
    says: ["At most 1 pod a second", "2 objects with 2 pods are before it", "in about 2s"],
  },
  "the rollout is paused": {
    spec: { paused: true },
    reason: "Paused",
    since: start,
    says: ["The rollout is paused", "aim resume si/web"],
  },
  "the rollout has halted": {
    who: "b",
    dicoms: { ...calm, a: { ...well, isUpToDate: false, spec: { failureHaltsUpdate: true } } },
    now: start + 11 * minute,
    reason: "FailureHaltsUpdate",
    since: start + 11 * minute,
    says: ["The rollout has halted: tier early: shop/a failed and failureHaltsUpdate is set", "aim rollback si/web"],
  },
  "the rollout has halted and is going to be taken back": {
    who: "b",
    spec: { onFailure: "Rollback" },
    dicoms: { ...calm, a: { ...well, isUpToDate: false, spec: { failureHaltsUpdate: true } } },
    now: start + 11 * minute,
    reason: "FailureHaltsUpdate",
    says: ["taken back, because onFailure is Rollback"],
  },
  "it is taken back next": {
    annotations: { "autoimagemanager.io/rollback": "g1" },
    dicoms: { ...calm, a: well },
    reason: "RollingBack",
    says: [
      `has ${v2} and goes back to ${v1}`,
      "Operation g1 of si/web is being taken back: requested by aim rollback",
      "changed next",
    ],
  },
  "it is taken back after lower priorities": {
    annotations: { "autoimagemanager.io/rollback": "g1" },
    dicoms: { ...calm, a: well, c: stamped },
    reason: "RollingBack",
    says: ["Tiers of a lower priority go back first"],
  },
  "it was taken back": {
    dicoms: { ...calm, a: { ...early, image: v1, decided: { from: v2, to: v1, reason: "RolledBack" } } },
    status: first => ({ ...first, operation: { ...first.operation!, phase: "RolledBack", cause: "too many failed" } }),
    reason: "RolledBack",
    says: [`is back on ${v1}`, "was taken back: too many failed", "aim resume si/web"],
  },
  "the operation that is taken back never changed it": {
    who: "c",
    status: first => ({ ...first, operation: { ...first.operation!, phase: "RolledBack" } }),
    reason: "RolledBack",
    says: ["operation g1 has not changed that"],
  },
  "unmanaged by its field": {
    dicoms: { ...calm, a: { ...early, spec: { manuallySpecifiedImage: true } } },
    reason: "Unmanaged",
    says: [`keeps ${v1}: its field spec.manuallySpecifiedImage is true`, `it would get ${v2}`],
  },
  "unmanaged by an annotation": {
    dicoms: { ...calm, a: { ...early, annotations: { "autoimagemanager.io/manually-specified-image": "true" } } },
    reason: "Unmanaged",
    says: ["its annotation autoimagemanager.io/manually-specified-image is true"],
  },
  "in no tier": {
    who: "c",
    spec: { defaultImage: "", tiers: [{ upgradeTier: "early", image: v2 }] },
    reason: "Unmatched",
    says: ["no label upgrade-tier names none of its tiers", "defaultImage"],
  },
  "an older ServiceImage has it": {
    dicoms: { a: early },
    others: [serviceImage("older", { defaultImage: v3, tiers: [] }, { createdAt: start - minute })],
    reason: "RollingOut",
    says: [`is to get ${v3} from si/older`, "si/web selects it too; si/older has it, because it is older"],
  },
  "an older one selects it, and this one has stamped it": {
    dicoms: { ...calm, a: well },
    others: [serviceImage("older", { defaultImage: v3, tiers: [] }, { createdAt: start - minute })],
    reason: "UpToDate",
    says: ["si/older selects it too; si/web has it, because it has stamped it"],
  },
  "another writer puts the old image back": {
    dicoms: {
      ...calm,
      a: {
        ...early,
        decided: {},
        managedFields: [{ manager: "argocd", time: formatInstant(start), fieldsV1: { "f:spec": { "f:image": {} } } }],
      },
    },
    now: start + minute,
    reason: "Contested",
    since: start + 10 * second,
    says: [`argocd put ${v1} back`, "let argocd leave the image alone"],
  },
  "another writer insists": {
    dicoms: { ...calm, a: { ...early, decided: {} } },
    status: withFailure("Contested", "shop/a"),
    reason: "Contested",
    says: [`puts ${v1} back whenever it is stamped`],
  },
  "its namespace has no grant": {
    status: withFailure("Forbidden", "shop/a"),
    reason: "Forbidden",
    says: ["aim grant shop"],
  },
  "others have a grant, and its namespace has none": {
    others: grantsIn("park"),
    reason: "RollingOut",
    says: ["stamped next", "Its namespace has no grant, so that stamp is going to be refused: aim grant shop."],
  },
  "refused by admission": {
    status: withFailure("AdmissionDenied", "shop/a"),
    reason: "AdmissionDenied",
    says: ["The API server refused the stamp (AdmissionDenied)"],
  },
  "refused by a quota": {
    status: withFailure("QuotaExceeded", "shop/a"),
    reason: "QuotaExceeded",
    says: ["refused the stamp (QuotaExceeded)"],
  },
  "no place for the image": {
    dicoms: { ...calm, a: { ...early, image: "", spec: { image: 5 } } },
    reason: "InvalidTarget",
    says: ["spec.image is not a text", "names paths spec.image"],
  },
  "being deleted": {
    dicoms: { ...calm, a: { ...early, deletedAt: start + second } },
    reason: "BeingDeleted",
    since: start + second,
    says: ["neither stamps it nor waits for it"],
  },
  "new, and its tier is at work": {
    dicoms: { ...calm, a: { ...early, image: "", isDeployed: false, createdAt: start + second } },
    now: start + minute,
    reason: "StampedNew",
    since: start + second,
    says: ["has no image yet", `it gets ${v2} at once`],
  },
  "new, in a tier that waits": {
    who: "c",
    dicoms: { ...calm, c: { image: "", isDeployed: false, createdAt: start + second }, d: {} },
    status: first => ({
      ...first,
      tierStatus: first.tierStatus.map(tier => ({ ...tier, newDeploymentImage: v1 })),
    }),
    now: start + minute,
    reason: "StampedNew",
    says: [`it gets ${v1} at once`, `It follows to ${v2} with its tier`],
  },
  "well before, and no longer": {
    dicoms: { a: { ...well, isUpToDate: false }, c: {} },
    status: first => ({
      ...first,
      tierStatus: first.tierStatus.map(tier => ({
        ...tier,
        newDeploymentImage: v2,
        conditions: tier.conditions.map(each => ({
          ...each,
          status: each.type === "Complete" ? ("True" as const) : each.status,
        })),
      })),
    }),
    now: start + minute,
    reason: "Regressed",
    says: ["does not wait for it; Ready is False"],
  },
  "left out by the labels of the object": {
    spec: { target: { ...target, selector: { matchLabels: { service: "dicom" } } } },
    reason: "NotSelected",
    says: ["No ServiceImage selects Dicom shop/a", "si/web is about this kind", "spec.target.selector (service=dicom)"],
  },
  "left out by the labels of its namespace": {
    spec: {
      target: {
        ...target,
        namespaceSelector: { matchExpressions: [{ key: "env", operator: "In", values: ["prod"] }] },
      },
    },
    others: [namespace("shop", { env: "test" })],
    reason: "NotSelected",
    says: ["the labels of namespace shop do not match spec.target.namespaceSelector (env in (prod))"],
  },
  "its ServiceImage cannot be carried out": {
    spec: { defaultImage: "Not An Image" },
    status: () => undefined,
    reason: "InvalidImage",
    says: ["Nothing is done to Dicom shop/a", "si/web selects it and cannot be carried out"],
  },
  "its ServiceImage names a version that is not served": {
    spec: { target: { ...target, apiVersion: "services.example.com/v1" } },
    reason: "KindNotFound",
    says: ["si/web would select it: the cluster does not serve Dicom in services.example.com/v1"],
  },
}

function grantsIn(...names: string[]): KubeObject[] {
  const apiVersion = "rbac.authorization.k8s.io/v1"
  return names.map(name => ({ apiVersion, kind: "RoleBinding", metadata: { name: "aim-target", namespace: name } }))
}

function withFailure(reason: "Contested" | "Forbidden" | "AdmissionDenied" | "QuotaExceeded", key: string) {
  return (first: ServiceImageStatus): ServiceImageStatus => ({
    ...first,
    tierStatus: first.tierStatus.map(tier =>
      tier.upgradeTier === "early"
        ? { ...tier, failures: [{ reason, scope: "Partial", count: 1, examples: [key] }] }
        : tier,
    ),
  })
}

function look({ spec = {}, annotations = {}, dicoms = calm, others = [], status = first => first, now = start }: Case) {
  const objects = Object.entries(dicoms).map(([name, words]) => dicom(name, words))
  const inventory = (last?: ServiceImageStatus) =>
    inventoryOf(serviceImage("web", spec, { annotations, status: last }), ...objects, ...others)
  const first = survey(inventory(), start).rollouts.find(each => each.serviceImage.metadata.name === "web")!.plan.status
  return { survey: survey(inventory(status(first)), now), objects }
}

describe("why an object has, or has not yet, its image", () => {
  for (const [name, given] of Object.entries(cases))
    test(name, () => {
      const { survey, objects } = look(given)
      const object = objects.find(({ metadata }) => metadata.name === (given.who ?? "a"))!
      const { reason, since, sentences } = whyObject(survey, { key: keyOf(object.metadata), object })
      expect({ reason, sentences }).toEqual({ reason: given.reason, sentences: expect.anything() })
      for (const words of given.says) expect(sentences.join(" ")).toContain(words)
      if (given.since !== undefined) expect(since).toBe(given.since)
      expect(sentences.length).toBeLessThanOrEqual(4)
      expect(sentences.join(" ")).not.toMatch(/undefined|NaN|\.\.|\[object/)
    })

  test("a kind that no ServiceImage is about", () => {
    const object = dicom("a")
    const { reason, sentences } = whyObject(survey(inventoryOf(object), start), { key: "shop/a", object })
    expect({ reason, sentences }).toEqual({
      reason: "NotSelected",
      sentences: ["No ServiceImage is about Dicom objects, so the image of Dicom shop/a is left alone."],
    })
  })

  test("the last decision is part of it", () => {
    const { survey, objects } = look({ dicoms: { a: well }, reason: "UpToDate", says: [] })
    const { lastDecision, tier } = whyObject(survey, { key: "shop/a", object: objects[0]! })
    expect(lastDecision).toMatchObject({
      from: v1,
      to: v2,
      operation: "g1",
      by: "serviceimage/web",
      at: start + 10 * second,
    })
    expect(tier).toEqual({ name: "early", priority: 1 })
  })
})

describe("why a rollout is where it is", () => {
  const rollouts: Record<string, Omit<Case, "who">> = {
    "under way": {
      reason: "RollingOut",
      says: ["operation g1 (InProgress)", "0/3 up to date", "The default tier comes after that"],
    },
    paused: { spec: { paused: true }, reason: "Paused", says: ["aim resume si/web"] },
    complete: {
      dicoms: { a: well, c: stamped },
      reason: "AllUpToDate",
      says: ["2 of 2 objects are up to date"],
    },
    halted: {
      dicoms: { ...calm, a: { ...well, isUpToDate: false, spec: { failureHaltsUpdate: true } } },
      now: start + 11 * minute,
      reason: "FailureHaltsUpdate",
      says: ["shop/a failed and failureHaltsUpdate is set", "aim rollback si/web"],
    },
    "the kind is missing": {
      spec: { target: { ...target, apiVersion: "services.example.com/v1" } },
      reason: "KindNotFound",
      says: ["the rollout starts when it does"],
    },
  }
  for (const [name, given] of Object.entries(rollouts))
    test(name, () => {
      const { survey } = look(given)
      const { reason, sentences } = whyRollout(survey.rollouts[0]!, survey.now)
      expect({ reason, sentences }).toEqual({ reason: given.reason, sentences: expect.anything() })
      for (const words of given.says) expect(sentences.join(" ")).toContain(words)
    })
})
