import { ServiceImage, type ServiceImageSpecInput, type ServiceImageStatus } from "#api/v1alpha1/serviceimage/index.ts"
import { Fleet } from "#core/fleet/fleet.ts"
import type { Member } from "#core/fleet/member.ts"
import { currentOperation } from "#core/fleet/operation.ts"
import type { Trace } from "#core/pods/trace.ts"
import { rulesOf } from "./observe.ts"
import { type Plan, plan, type Snapshot } from "./plan.ts"
import { findProblem } from "./validate.ts"

// What a plan is made from, for tables: a calm world, and the one difference that matters.

export const second = 1000
export const start = Date.parse("2026-01-01T00:00:00Z")
export const [v1, v2, v3] = ["shop/web:1", "shop/web:2", "shop/web:3"]

// A calm world: two tiers, early first, every object healthy on v1, and a spec that asks for v2.
const target = { apiVersion: "services.example.com/v1alpha1", kind: "Dicom" }
const calm: ServiceImageSpecInput = {
  target,
  defaultImage: v2,
  tiers: [
    { upgradeTier: "early", priority: 1 },
    { upgradeTier: "", priority: 0 },
  ],
}
export const dicom = (fields: Partial<Member> & { tier?: string } = {}): Member => ({
  resourceVersion: "1",
  uid: "u",
  namespace: "n",
  labels: { "upgrade-tier": fields.tier ?? "" },
  createdAt: start - 1,
  isDeleting: false,
  image: v1,
  isUnmanaged: false,
  haltsOnFailure: false,
  isUpToDate: true,
  isDeployed: true,
  decision: undefined,
  ...fields,
})
export const fleet = {
  "n/e1": dicom({ tier: "early" }),
  "n/e2": dicom({ tier: "early" }),
  "n/d1": dicom(),
  "n/d2": dicom(),
}

export type World = {
  spec?: Partial<ServiceImageSpecInput>
  members?: Record<string, Member>
  status?: ServiceImageStatus
  generation?: number
  now?: number
  see?: Partial<Snapshot>
  traces?: Record<string, Trace>
  annotations?: Record<string, string>
}

export function look({
  spec = {},
  members = fleet,
  status,
  generation = 1,
  now = start,
  see = {},
  traces = {},
  annotations,
}: World): Snapshot {
  const serviceImage: ServiceImage = {
    apiVersion: ServiceImage.apiVersion,
    kind: "ServiceImage",
    metadata: { name: "web", generation, ...(annotations && { annotations }) },
    spec: ServiceImage.spec.parse({ ...calm, ...spec }),
    ...(status ? { status } : {}),
  }
  const operation = currentOperation(serviceImage, now)
  const index = new Fleet(rulesOf(serviceImage, operation, now), now)
  for (const [key, member] of Object.entries(members)) index.set(key, member, traces[key])
  return {
    serviceImage,
    operation,
    problem: findProblem(serviceImage.spec),
    target: { state: "Synced" },
    tiers: index.tiers(),
    unmatched: index.unmatched,
    conflicts: undefined,
    preCache: undefined,
    pace: { pods: Number.POSITIVE_INFINITY, readyAt: now },
    fence: {
      electionID: "me",
      declared: new Map(),
      isFresh: true,
      unsure: new Set(),
      busy: new Set(),
      trust: new Map(),
      outdated: new Map(),
      isBehind: false,
    },
    fleetChangesAt: index.nextChangeAt(),
    now,
    ...see,
  }
}

export const decide = (world: World): Plan => plan(look(world))
export const condition = ({ status }: Plan, type: string) => status.conditions.find(each => each.type === type)
export const stamped = ({ stamps }: Plan) => Object.fromEntries(stamps.map(({ key, to }) => [key, to]))
export const words = (next: Plan) => ({
  stamps: stamped(next),
  reason: condition(next, "Complete")!.reason,
  complete: condition(next, "Complete")!.status,
  priority: next.status.currentPriority,
})

/** The status a world has reached: each look starts from the status of the one before. */
export const after = (world: World) => decide(world).status
export const on = (image: string, ...keys: (keyof typeof fleet)[]) =>
  Object.fromEntries(
    Object.entries(fleet).map(([key, each]) => [key, keys.includes(key as never) ? { ...each, image } : each]),
  )
export const begun = after({})
export const done = after({ members: on(v2, "n/e1", "n/e2", "n/d1", "n/d2") })
