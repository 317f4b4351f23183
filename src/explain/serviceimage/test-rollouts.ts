import { ServiceImage, type ServiceImageSpecInput } from "#api/v1alpha1/serviceimage/index.ts"
import type { RoundCheck } from "#controllers/serviceimage/analysis.ts"
import { rulesOf } from "#controllers/serviceimage/observe.ts"
import { plan, type Snapshot } from "#controllers/serviceimage/plan.ts"
import type { Proof } from "#core/canary/proof.ts"
import { Fleet } from "#core/fleet/fleet.ts"
import type { Member } from "#core/fleet/member.ts"
import { currentOperation } from "#core/fleet/operation.ts"
import type { Instant } from "#lib/instant.ts"
import { type Chance, chanceOf } from "#runtime/test-chance.ts"
import type { Surveyed } from "./survey.ts"

// Rollouts at random: each takes a few rounds, in which objects, spec and writes go well or badly.

const start = Date.parse("2026-01-01T00:00:00Z")
const [v1, v2, v3] = ["shop/web:1", "shop/web:2", "shop/web:3"]
const target = { apiVersion: "services.example.com/v1alpha1", kind: "Dicom" }

export type Moment = { seed: number; rollout: Surveyed & { fleet: Fleet }; now: Instant }

/** Every moment of a few rollouts. Those after the first 200 are judged by an analysis. */
export function* moments(seeds: number): Generator<Moment> {
  for (let seed = 1; seed <= seeds; seed++) yield* rolloutOf(seed)
}

function* rolloutOf(seed: number): Generator<Moment> {
  const chance = chanceOf(seed)
  const { often, pick, below } = chance
  const aside = chanceOf(seed + 1000)
  const beside = chanceOf(seed + 2000)
  const judged = chanceOf(seed + 3000)
  let serviceImage = serviceImageOf(chance, aside, seed > 200)
  const members = membersOf(chance)
  let now = start
  let operation = currentOperation(serviceImage, now)
  const fleet = new Fleet(rulesOf(serviceImage, operation, now), now)
  for (const [key, member] of members) fleet.set(key, member)

  for (let round = 0; round < 8; round++) {
    const next = currentOperation(serviceImage, now)
    if (next.phase !== operation.phase) fleet.renew(rulesOf(serviceImage, next, now), now)
    operation = next
    fleet.advance(now)
    const keys = [...members.keys()]
    const snapshot: Snapshot = {
      serviceImage,
      operation,
      problem: undefined,
      target: { state: "Synced" },
      tiers: fleet.tiers(),
      unmatched: fleet.unmatched,
      preCache: preCacheOf(serviceImage, aside),
      conflicts: often(0.1) ? { count: 1, with: "other" } : undefined,
      pace: { pods: pick([0, 1, 3, Number.POSITIVE_INFINITY]), readyAt: now },
      fence: {
        electionID: "me",
        declared: new Map(),
        isFresh: false,
        unsure: new Set(often(0.2) ? [pick(keys)] : []),
        busy: new Set(often(0.2) ? [pick(keys)] : []),
        trust: new Map([["a", pick(["Proven", "Suspect"])]]),
        outdated: new Map(often(0.2) ? [[pick(keys), "1"]] : []),
        isBehind: often(0.05),
      },
      fleetChangesAt: fleet.nextChangeAt(),
      now,
    }
    const { asks } = plan(snapshot)
    if (asks.length > 0 && judged.often(0.8))
      snapshot.checks = new Map(asks.map(({ tier }) => [tier, [judged.pick(verdicts)]]))
    const planned = plan(snapshot)
    yield {
      seed,
      now,
      rollout: { serviceImage, resource: undefined, snapshot, plan: planned, fleet, conflicts: new Map() },
    }

    now += pick([1, 20, 120, 700]) * 1000
    fleet.advance(now)
    for (const { key, to } of planned.stamps) {
      if (often(0.15)) fleet.refuse(often(0.7) ? { key } : { namespace: key.slice(0, 1) }, refusal(chance))
      else write(key, { image: to, isUpToDate: often(0.6), decision: decided(members.get(key)!, to) }, true)
    }
    for (const key of keys) {
      const [isProven, state] = [beside.often(0.05), beside.pick(["UnderWay", "Failed", "Stalled", undefined] as const)]
      if (isProven) fleet.proof(key, state && proof(state))
      if (often(0.1)) write(key, { isUpToDate: often(0.5) }, false)
      if (!often(0.03)) continue
      write(key, { image: pick([v1, v3, ""]), inPlace: aside.pick([takenBack, kept, undefined, undefined]) }, false)
      if (beside.often(0.3)) fleet.proof(key, proof("Failed"))
    }
    const annotations = often(0.07)
      ? { "autoimagemanager.io/rollback": operation.id }
      : serviceImage.metadata.annotations
    const spec = { ...serviceImage.spec, paused: often(0.15) }
    const metadata = { ...serviceImage.metadata, ...(annotations && { annotations }) }
    serviceImage = { ...serviceImage, metadata, spec, status: planned.status }
  }

  function write(key: string, change: Partial<Member>, isStamp: boolean): void {
    const before = members.get(key)!
    const member = { ...before, ...change, resourceVersion: String(Number(before.resourceVersion) + 1) }
    members.set(key, member)
    // A webhook may change what we write.
    if (isStamp && below(20) > 0) fleet.stamped(key, member)
    else fleet.set(key, member)
  }

  function decided({ image: from }: Member, to: string): Member["decision"] {
    const { id } = operation
    const reason = operation.phase === "RollingBack" ? "RolledBack" : "Stamped"
    return { from, to, reason, operation: id, by: "serviceimage/web", uid: "uid-web", at: now }
  }
}

/** What a metric of a step may say. */
const verdicts: readonly RoundCheck[] = [
  { name: "errors", verdict: "Good", value: 1 },
  { name: "errors", verdict: "Bad", value: 9, why: "9 is above 5" },
  { name: "errors", verdict: "NoData", why: "the query found no series" },
  { name: "errors", verdict: "Error", why: "no connection" },
]

const analysis: NonNullable<ServiceImageSpecInput["tiers"]>[number]["analysis"] = {
  interval: "20s",
  threshold: 2,
  metrics: [{ name: "errors", templateRef: { name: "errors" }, thresholdRange: { max: 5 } }],
}

/** How its Canary stands with the image. */
const proof = (state: Proof["state"]): Proof => ({
  name: "web",
  state,
  images: [v2],
  source: [v1],
  message: "Canary web: so it stands",
  at: 0,
})

/** After an update in place that failed. */
const takenBack: NonNullable<Member["inPlace"]> = {
  generation: 1,
  strategy: "InPlaceOnly",
  isHeld: false,
  isLent: false,
  isUnderWay: false,
  original: undefined,
  blocked: undefined,
  takenBack: { image: v2, message: "3 pods went back" },
}

/** Its owner has stopped its controller. */
const kept: typeof takenBack = { ...takenBack, takenBack: undefined }

const refusal = ({ pick }: Chance) => ({
  reason: pick(["Forbidden", "AdmissionDenied", "WriteFailed"] as const),
  message: "no",
})

/** Nothing is known of the nodes yet, or none is without its image. */
const preCacheOf = ({ spec }: ServiceImage, { often }: Chance): Snapshot["preCache"] =>
  spec.preCache === "Never"
    ? undefined
    : {
        unknown: often(0.7) ? { words: "pull jobs are being read", isLasting: often(0.5) } : undefined,
        nodesOf: () => new Map(),
        jobs: new Map(),
        refused: new Map(),
      }

function serviceImageOf(chance: Chance, aside: Chance, isJudged: boolean): ServiceImage {
  const { often, pick } = chance
  const tier = (upgradeTier: string, priority: number) => ({
    upgradeTier,
    priority,
    settleSeconds: pick([0, 0, 60]),
    ...(often(0.4) && { maxConcurrent: pick([1, 3, "50%"]) }),
    ...(often(0.2) && { requireApproval: true }),
    ...(often(0.2) && { failureBudget: 0 }),
    ...(often(0.5) && { steps: [{ percent: pick([1, 20, 50]), soakSeconds: pick([0, 3600]) }, { percent: 100 }] }),
    ...(isJudged && { analysis }),
  })
  const spec: ServiceImageSpecInput = {
    target,
    defaultImage: v2,
    tiers: [tier("early", 1), tier("", 0)],
    pace: { podsPerSecond: pick([0, 2]) },
    onFailure: pick(["Halt", "Rollback"]),
    paused: often(0.1),
    analysisNamespace: "a",
    preCache: aside.often(0.3) ? "BeforeTier" : "Never",
    preCacheTimeoutSeconds: 600,
    preCacheMissing: aside.pick(["Wait", "Proceed"]),
  }
  return {
    apiVersion: ServiceImage.apiVersion,
    kind: "ServiceImage",
    metadata: { name: "web", uid: "uid-web", generation: 1 },
    spec: ServiceImage.spec.parse(spec),
  }
}

function membersOf({ often, pick, below }: Chance): Map<string, Member> {
  const count = often(0.1) ? 150 : 2 + below(12)
  return new Map(
    Array.from({ length: count }, (_, index): [string, Member] => {
      const namespace = pick(["a", "b"])
      const isNew = often(0.15)
      const member: Member = {
        resourceVersion: "1",
        uid: `uid-${index}`,
        namespace,
        labels: often(0.5) ? { "upgrade-tier": "early" } : {},
        createdAt: isNew ? start + 1000 : start - 1000,
        isDeleting: false,
        image: isNew ? pick(["", v1]) : pick([v1, v1, v1, v2]),
        isUnmanaged: often(0.05),
        haltsOnFailure: often(0.1),
        isUpToDate: often(0.9),
        isDeployed: !isNew,
        decision: undefined,
        replicas: pick([0, 1, 1, 4]),
        ...(often(0.05) && { problem: "has no container web" }),
        ...(often(0.5) && { contestedBy: "argocd" }),
      }
      return [`${namespace}/o${index}`, member]
    }),
  )
}
