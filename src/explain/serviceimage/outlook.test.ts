import { expect, test } from "vitest"
import type { ServiceImageSpecInput, ServiceImageStatus } from "#api/v1alpha1/serviceimage/index.ts"
import { formatInstant } from "#lib/instant.ts"
import type { KubeObject } from "#runtime/resource.ts"
import { type DicomWords, dicom, inQueue, inventoryOf, serviceImage, start, v2 } from "../test-inventory.ts"
import { outlookOf, type Stage, warningsOf } from "./outlook.ts"
import { survey } from "./survey.ts"

type Case = {
  spec?: Partial<ServiceImageSpecInput>
  dicoms: Record<string, DicomWords>
  status?: Partial<ServiceImageStatus>
  now?: number
  stages: (Partial<Omit<Stage, "tiers" | "waits">> & { objects: number; pods?: number; underWay?: number })[]
  msAtLeast: number
}

const early = { tier: "early" }
const stamped = { image: v2, decided: {} }
const [first, , third, last] = inQueue("p", "q", "r", "s")
const halves = (soakSeconds: number) => [
  {
    upgradeTier: "",
    steps: [
      { percent: 50, soakSeconds },
      { percent: 100, soakSeconds: 60 },
    ],
  },
]

const analysis = {
  interval: "2m",
  threshold: 3,
  metrics: [{ name: "error-rate", templateRef: { name: "error-rate" }, thresholdRange: { max: 1 } }],
  webhooks: [{ name: "smoke", url: "https://smoke.example.com/" }],
}

const cases: Record<string, Case> = {
  "two priorities, one pod each, at ten pods a second": {
    dicoms: { a: early, b: early, c: {} },
    stages: [
      { priority: 1, objects: 2, pods: 2, paceMs: 200, isActive: true },
      { priority: 0, objects: 1, pods: 1, paceMs: 100, isActive: false },
    ],
    msAtLeast: 300,
  },
  "without a pace nothing is known to take time": {
    spec: { pace: { podsPerSecond: 0 } },
    dicoms: { a: early },
    stages: [{ priority: 1, objects: 1, paceMs: 0 }],
    msAtLeast: 0,
  },
  "what is under way is not to be stamped again": {
    dicoms: { a: { ...early, ...stamped, isUpToDate: false }, b: early },
    stages: [{ priority: 1, objects: 1, underWay: 1, paceMs: 100 }],
    msAtLeast: 100,
  },
  "every soak to come": {
    spec: { tiers: halves(3600) },
    dicoms: { [first!]: {}, [last!]: {} },
    stages: [{ priority: 0, objects: 2, soakMs: 3_660_000 }],
    msAtLeast: 3_660_200,
  },
  "an interval for each step that is judged": {
    spec: { tiers: halves(0).map(tier => ({ ...tier, analysis })), analysisNamespace: "shop" },
    dicoms: { [first!]: {}, [last!]: {} },
    stages: [{ priority: 0, objects: 2, soakMs: 240_000 }],
    msAtLeast: 240_200,
  },
  "what is left of the present soak": {
    spec: { tiers: halves(3600) },
    dicoms: { [first!]: stamped, [last!]: {} },
    status: { step: { percent: 50, upToDateAt: formatInstant(start) } } as never,
    now: start + 600_000,
    stages: [{ priority: 0, objects: 1, soakMs: 3_060_000 }],
    msAtLeast: 3_060_100,
  },
  "a step that adds no objects does not soak": {
    spec: {
      tiers: [
        {
          upgradeTier: "",
          steps: [{ percent: 1, soakSeconds: 60 }, { percent: 2, soakSeconds: 600 }, { percent: 100 }],
        },
      ],
    },
    dicoms: { [third!]: {}, [last!]: {} },
    stages: [{ priority: 0, objects: 2, soakMs: 60_000 }],
    msAtLeast: 60_200,
  },
  "a person has to say yes, now and later": {
    spec: {
      tiers: [
        { upgradeTier: "early", priority: 1, requireApproval: true },
        { upgradeTier: "", requireApproval: true },
      ],
    },
    dicoms: { a: early, c: {} },
    stages: [
      { priority: 1, objects: 1, approvals: ["early"] },
      { priority: 0, objects: 1, approvals: [""] },
    ],
    msAtLeast: 200,
  },
  "nothing is left": { dicoms: { a: { ...early, ...stamped }, c: stamped }, stages: [], msAtLeast: 0 },
}

function look({ spec = {}, dicoms, status, now = start }: Pick<Case, "spec" | "dicoms" | "status" | "now">) {
  const objects = Object.entries(dicoms).map(([name, words]) => dicom(name, words))
  const begun = survey(inventoryOf(serviceImage("web", spec), ...objects), start).rollouts[0]!.plan.status
  const last = { ...begun, tierStatus: begun.tierStatus.map(tier => ({ ...tier, ...status })) } as ServiceImageStatus
  return survey(inventoryOf(serviceImage("web", spec, { status: last }), ...objects), now).rollouts[0]!
}

for (const [name, { stages, msAtLeast, ...given }] of Object.entries(cases))
  test(name, () => {
    const outlook = outlookOf(look(given))
    const sum = (stage: Stage, of: "objects" | "pods" | "underWay") =>
      stage.tiers.reduce((total, tier) => total + tier[of], 0)
    const told = outlook.stages.map(stage => ({
      ...stage,
      objects: sum(stage, "objects"),
      pods: sum(stage, "pods"),
      underWay: sum(stage, "underWay"),
    }))
    expect(told).toMatchObject(stages)
    expect(outlook.msAtLeast).toBe(msAtLeast)
  })

test("what each step is judged by", () => {
  const spec = { tiers: [{ upgradeTier: "", analysis }], analysisNamespace: "shop" }
  const outlook = outlookOf(look({ spec, dicoms: { a: {} } }))
  expect(outlook.stages[0]!.tiers[0]!.judged).toEqual({ by: ["error-rate", "smoke"], interval: "2m", threshold: 3 })
})

test("in place or re-created, for each tier", () => {
  const strategy = "autoimagemanager.io/update-strategy"
  const deployment = (name: string, tier: string, more: { annotations?: object; paused?: boolean } = {}): KubeObject =>
    ({
      apiVersion: "apps/v1",
      kind: "Deployment",
      metadata: {
        ...{ name, namespace: "shop", uid: name, resourceVersion: "1", generation: 1 },
        creationTimestamp: formatInstant(start - 1000),
        labels: { "upgrade-tier": tier },
        annotations: more.annotations ?? {},
      },
      spec: {
        replicas: 2,
        ...(more.paused && { paused: true }),
        template: { spec: { containers: [{ name: "app", image: "shop/web:1" }] } },
      },
      status: {},
    }) as KubeObject
  const spec: Partial<ServiceImageSpecInput> = {
    target: { apiVersion: "apps/v1", kind: "Deployment", image: { container: "app" } },
    tiers: [
      { upgradeTier: "asked", priority: 3, updateStrategy: "InPlaceIfPossible" },
      { upgradeTier: "own", priority: 2 },
      { upgradeTier: "replaced", priority: 1, updateStrategy: "Recreate" },
      { upgradeTier: "", priority: 0 },
    ],
  }
  const asks = { annotations: { [strategy]: "InPlaceOnly" } }
  const objects = [
    deployment("a", "asked"),
    deployment("b", "own", asks),
    deployment("c", "own", { annotations: { [strategy]: "InPlaceIfPossible" }, paused: true }),
    deployment("d", "replaced", asks),
    deployment("e", ""),
  ]
  const { rollouts } = survey(inventoryOf(serviceImage("web", spec), ...objects), start)
  const tiers = outlookOf(rollouts[0]!).stages.flatMap(stage => stage.tiers)
  expect(tiers.map(({ name, how, inPlace }) => [name, how, inPlace])).toEqual([
    ["asked", "InPlace", 1],
    ["own", "Partly", 1],
    ["replaced", "Recreate", 0],
    ["", "Recreate", 0],
  ])
  const [custom] = outlookOf(look({ dicoms: { a: early } })).stages
  expect(custom!.tiers.map(({ how }) => how)).toEqual(["Own"])
})

test("which objects are left out, and why", () => {
  const dicoms: Record<string, DicomWords> = {
    kept: { ...early, spec: { manuallySpecifiedImage: true } },
    odd: { ...early, image: "", spec: { image: 5 } },
    undone: { ...early, decided: {} },
    late: { ...early, ...stamped, isUpToDate: false },
    fine: early,
  }
  const warnings = warningsOf(look({ dicoms, now: start + 700_000 }), { lacksGrant: () => false })
  expect(warnings.map(({ reason, count, examples }) => ({ reason, count, examples }))).toEqual([
    { reason: "Contested", count: 1, examples: ["shop/undone"] },
    { reason: "IgnoredFailure", count: 1, examples: ["shop/late"] },
    { reason: "InvalidTarget", count: 1, examples: ["shop/odd"] },
    { reason: "Unmanaged", count: 1, examples: ["shop/kept"] },
  ])
})

test("a namespace without a grant, where others have one", () => {
  const rollout = look({ dicoms: { a: early, b: { ...early, ...stamped } } })
  const [warning, ...others] = warningsOf(rollout, { lacksGrant: namespace => namespace === "shop" })
  expect(warning).toMatchObject({ reason: "Forbidden", count: 1, examples: ["shop/a"] })
  expect(others).toEqual([])
})
