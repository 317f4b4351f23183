import { Canary, type CanarySpecInput, type CanaryStatus, type Run } from "#api/v1alpha1/canary/index.ts"
import { validate } from "#api/validate.ts"
import { parseInstant } from "#lib/instant.ts"
import type { SetSeen, Sight, WorkloadSeen } from "./sight.ts"

/** A calm world around a Canary, and the one difference that matters. */

export const startedAt = "2026-01-01T00:00:00Z"
export const start = parseInstant(startedAt)!
export const second = 1000
export const minute = 60_000

export const canaryOf = (
  spec: Partial<CanarySpecInput> = {},
  status?: Partial<CanaryStatus>,
  annotations?: Record<string, string>,
): Canary => {
  const { object, errors } = validate(Canary, {
    apiVersion: "autoimagemanager.io/v1alpha1",
    kind: "Canary",
    metadata: { name: "web", namespace: "shop", uid: "c1", generation: 1, ...(annotations && { annotations }) },
    spec: {
      targetRef: { apiVersion: "apps/v1", kind: "Deployment", name: "web" },
      service: { port: 80, gatewayRefs: [{ name: "gateway" }] },
      analysis: { interval: "1m", threshold: 2, stepWeight: 20, maxWeight: 40 },
      ...spec,
    },
  })
  if (!object) throw new Error(JSON.stringify(errors))
  const full = status && {
    canaryWeight: 0,
    failedChecks: 0,
    iterations: 0,
    conditions: [],
    history: [],
    observedGeneration: 1,
    ...status,
  }
  return { ...(object as Canary), ...(full && { status: full as CanaryStatus }) }
}

export const oldSet: SetSeen = {
  name: "web-old",
  owner: "user",
  hash: "old",
  checksum: "aaaa",
  images: ["web:1"],
  size: 4,
  ready: 4,
  revision: 1,
}
export const newSet: SetSeen = {
  ...oldSet,
  name: "web-bbbb-new",
  owner: "trial",
  hash: "new",
  checksum: "bbbb",
  images: ["web:2"],
  size: 1,
  ready: 1,
}

export const workload: WorkloadSeen = {
  name: "web",
  uid: "d1",
  size: 4,
  generation: 2,
  isObserved: true,
  isPaused: true,
  hold: { isStanding: false },
  checksum: "bbbb",
  images: ["web:2"],
  revision: 1,
  updated: 0,
}

export const trial = {
  name: "web-bbbb",
  isOurs: true,
  isGoing: false,
  size: 1,
  checksum: "bbbb",
  isPaused: false,
  isPauseSeen: false,
}

export const aRun: Run = {
  id: "r2_bbbb",
  checksum: "bbbb",
  startedAt,
  source: { hash: "old", workload: "web", images: ["web:1"] },
  target: { hash: "new", workload: "web-bbbb", images: ["web:2"] },
  sizes: { full: 4, source: 4, target: 1 },
  weight: 0,
  weightSince: startedAt,
  mirrored: false,
  iterations: 0,
  failedChecks: 0,
  progressAt: startedAt,
  metrics: [],
  gates: [],
  reason: "Started",
  message: "",
}

/** Between runs: nothing is held, and the source answers. */
export const calm = (): Sight => ({
  canary: canaryOf({}, { phase: "Initialized", lastAppliedSpec: "aaaa" }),
  now: start,
  hasFinalizer: true,
  workload: { ...workload, isPaused: false, hold: undefined, checksum: "aaaa", images: ["web:1"] },
  sets: [oldSet],
  services: {
    source: { hash: "old", ready: { old: 4 } },
    target: { hash: "old", ready: { old: 4 } },
    areMade: () => true,
  },
  route: { split: { weight: 0, isMirrored: false }, isAccepted: true, why: "" },
  routesBySelector: false,
  isLeft: false,
  answers: new Map(),
})

/** In a run: the new revision is ready with one pod, and has this weight for as long. */
export function running(
  weight: number,
  {
    spec = {},
    status = {},
    run = {},
    forMs = 0,
    annotations,
  }: {
    spec?: Partial<CanarySpecInput>
    status?: Partial<CanaryStatus>
    run?: Partial<Run>
    forMs?: number
    annotations?: Record<string, string>
  } = {},
): Sight {
  const size = weight === 100 ? 4 : Math.max(1, Math.ceil((4 * weight) / 100))
  return {
    ...calm(),
    canary: canaryOf(
      spec,
      {
        phase: "Progressing",
        lastTransitionTime: startedAt,
        lastAppliedSpec: "bbbb",
        canaryWeight: weight,
        run: { ...aRun, weight, reason: "Measuring", ...run },
        ...status,
      },
      annotations,
    ),
    now: start + forMs,
    workload,
    sets: [oldSet, { ...newSet, size, ready: size }],
    trial: { ...trial, size },
    services: {
      source: { hash: "old", ready: { old: 4 } },
      target: { hash: "new", ready: { new: size } },
      areMade: () => true,
    },
    route: { split: { weight, isMirrored: false }, isAccepted: true, why: "" },
  }
}
