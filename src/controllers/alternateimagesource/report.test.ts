import { describe, expect, test } from "vitest"
import type {
  AlternateImageSource,
  AlternateImageSourceStatus,
  Incident,
  Reason,
} from "#api/v1alpha1/alternateimagesource/index.ts"
import { formatInstant } from "#lib/instant.ts"
import type { Decision, Group, Retarget } from "./group.ts"
import { statusOf, storyOf } from "./report.ts"
import type { Entry } from "./sources.ts"

const now = Date.parse("2026-01-01T12:00:00Z")
const [a, b] = ["a.example/app", "b.example/app"]

const entry = (name: string): Entry => ({
  workload: {
    type: { group: "apps", kind: "deployment" },
    name,
    namespace: "shop",
    uid: `uid-${name}`,
    resourceVersion: "1",
    hasTemplate: true,
    replacesPods: true,
    isGitOps: false,
    isOwned: false,
  },
  container: { name: "app", image: `${a}:1`, isInit: false },
})

const incident: Incident = {
  since: formatInstant(now - 60_000),
  reason: "Switched",
  image: `${a}:1`,
  failing: a,
  working: b,
  bad: [a],
  attempts: 0,
}

const pod = {
  key: "shop/p",
  uid: "p",
  resourceVersion: "1",
  image: `${a}:1`,
  failure: "Unreachable",
  since: 0,
  node: "node-1",
  pullsAlways: false,
} as const

function decision(name: string, reason: Reason, more: Partial<Decision> = {}, failing = 1): Decision {
  const { workload, container } = entry(name)
  const group: Group = {
    workload,
    container: container.name,
    isInit: false,
    image: container.image,
    repositories: [a, b],
    digest: undefined,
    pods: () => 3,
    failing: Array(failing).fill(pod),
    held: [],
  }
  return { group, incident, reason, message: `${name} ${reason}`, repairs: [], asks: [], ...more }
}

const retargeted = { from: `${a}:1`, to: `${b}:1`, reason: "Unreachable" as const, at: now, pods: 0 }
const step = { oldImage: `${a}:1`, newImage: `${b}:1`, reason: "Unreachable" as const, repository: b }

type Given = {
  status?: AlternateImageSourceStatus
  roster?: Entry[]
  claimed?: number
  missing?: string[]
  decisions?: Decision[]
  accepted?: [Decision, number][]
  repositories?: string[]
  disabledRepositories?: string[]
}

function told({
  status,
  roster = [entry("web")],
  claimed = 0,
  missing = [],
  decisions = [],
  accepted = [],
  ...given
}: Given) {
  const { repositories: equivalentRepositories = [a, b], disabledRepositories = [] } = given
  const spec = { imageSourceReplacements: [{ equivalentRepositories }], policy: { disabledRepositories } }
  const object = { metadata: { name: "demo", generation: 4 }, spec, status } as unknown as AlternateImageSource
  return statusOf(object, { roster, claimed, missing }, decisions, new Map(accepted), now)
}

describe("only what was accepted is reported", () => {
  const switching = decision("web", "Repairing", { step })
  test("a switch that was", () => {
    const [target] = told({ decisions: [switching], accepted: [[switching, 3]] }).targetsAvailable
    expect(target).toEqual({
      container: "app",
      currentRepository: b,
      name: "web",
      type: { group: "apps", kind: "deployment" },
      uid: "uid-web",
      switches: [{ oldImage: `${a}:1`, newImage: `${b}:1`, time: formatInstant(now), reason: "Unreachable", pods: 3 }],
      incident,
    })
  })
  test("a switch that was not", () => {
    const [target] = told({ decisions: [switching] }).targetsAvailable
    expect(target).toMatchObject({ currentRepository: a })
    expect(target).not.toHaveProperty("switches")
    expect(target?.incident).not.toHaveProperty("working")
    expect(storyOf(undefined, [switching], new Map())).toEqual([])
  })
  test("a switch that was not leaves where it worked before", () => {
    const c = "c.example/app"
    const onwards = decision("web", "Repairing", { step, incident: { ...incident, working: c } })
    const status = told({ decisions: [switching], accepted: [[switching, 1]] })
    expect(told({ status, decisions: [onwards] }).targetsAvailable[0]).toMatchObject({ currentRepository: b })
  })
  test("a template counts the pods it is for", () => {
    const retarget = { do: "retarget" } as Decision["retarget"]
    const changing = decision("web", "Repairing", { step, retarget }, 3)
    const [target] = told({ decisions: [changing], accepted: [[changing, 1]] }).targetsAvailable
    expect(target?.switches?.[0]?.pods).toBe(3)
  })
  test("a repair that only its pods record", () => {
    const repaired = { from: `${a}:1`, to: `${b}:1`, reason: "Timeout" as const, at: now - 30_000, pods: 2 }
    const knowing = decision("web", "Switched", {}, 0)
    const known = { ...knowing, group: { ...knowing.group, repaired } }
    const status = told({ decisions: [known] })
    const switches = [
      { oldImage: `${a}:1`, newImage: `${b}:1`, time: formatInstant(now - 30_000), reason: "Timeout", pods: 2 },
    ]
    expect(status.targetsAvailable[0]?.switches).toEqual(switches)
    expect(told({ status, decisions: [known] }).targetsAvailable[0]?.switches, "once").toEqual(switches)
  })
  test("the way back is reported without a write: there is none", () => {
    const back = { ...step, oldImage: `${b}:1`, newImage: `${a}:1`, reason: "SwitchedBack" as const, repository: a }
    const returning = decision("web", "SwitchedBack", { step: back, incident: undefined }, 0)
    const [target] = told({ decisions: [returning] }).targetsAvailable
    expect(target).toMatchObject({ currentRepository: a, switches: [{ reason: "SwitchedBack" }] })
    expect(target).not.toHaveProperty("incident")
  })
})

describe("bounds", () => {
  test("the newest ten switches of a container are kept", () => {
    const old = Array.from({ length: 10 }, (_, n) => ({ oldImage: `${n}`, newImage: `${n}`, time: formatInstant(now) }))
    const status = { ...told({}), targetsAvailable: [{ ...told({}).targetsAvailable[0]!, switches: old }] }
    const again = decision("web", "Repairing", { step })
    const { switches } = told({ status, decisions: [again], accepted: [[again, 1]] }).targetsAvailable[0]!
    expect(switches).toHaveLength(10)
    expect(switches?.map(({ newImage }) => newImage)).toEqual([..."123456789", `${b}:1`])
  })
  test("those in trouble come first where there are too many, else the order of the roster stays", () => {
    const many = Array.from({ length: 250 }, (_, n) => entry(`w${1000 + n}`))
    const last = decision("w1249", "Confirming")
    const { targetsAvailable, targets } = told({ roster: many, decisions: [last] })
    expect([targetsAvailable.length, targetsAvailable[0]?.name, targets]).toEqual([200, "w1249", 250])
    const few = told({ roster: many.slice(240), decisions: [last] }).targetsAvailable
    expect(few.map(({ name }) => name)).toEqual(many.slice(240).map(({ workload }) => workload.name))
  })
  test("what a custom kind owns is listed while there is something to report", () => {
    const stranger = decision("own", "Switched", {}, 0)
    expect(told({ roster: [], decisions: [stranger] }).targetsAvailable).toMatchObject([{ name: "own" }])
    expect(told({ roster: [], decisions: [] }).targetsAvailable).toEqual([])
  })
})

describe("conditions", () => {
  const words = (given: Given) =>
    told(given).conditions.map(({ type, status, reason }) => `${type} ${status} ${reason}`)
  const cases: Record<string, [Given, string[]]> = {
    "nothing fails": [
      {},
      ["Ready True Watching", "Switched False Watching", "AllSourcesDown False Watching", "Stalled False NothingToDo"],
    ],
    "something runs from elsewhere": [
      { decisions: [decision("web", "Switched", {}, 0)] },
      ["Ready True Switched", "Switched True Switched", "AllSourcesDown False Watching", "Stalled False NothingToDo"],
    ],
    "something is waited for": [
      { decisions: [decision("web", "Confirming", { incident: { ...incident, working: undefined } })] },
      [
        "Ready False Confirming",
        "Switched False Watching",
        "AllSourcesDown False Watching",
        "Stalled False NothingToDo",
      ],
    ],
    "nothing helps": [
      { decisions: [decision("web", "AllSourcesDown", { incident: { ...incident, working: undefined } })] },
      [
        "Ready False AllSourcesDown",
        "Switched False Watching",
        "AllSourcesDown True AllSourcesDown",
        "Stalled False NothingToDo",
      ],
    ],
    "the gravest is reported": [
      {
        roster: [entry("a"), entry("b")],
        decisions: [
          decision("a", "Confirming", { incident: { ...incident, working: undefined } }),
          decision("b", "SignatureRejected", { incident: { ...incident, working: undefined } }),
        ],
      },
      [
        "Ready False SignatureRejected",
        "Switched False Watching",
        "AllSourcesDown False Watching",
        "Stalled True SignatureRejected",
      ],
    ],
    "a target is missing": [
      { missing: ["deployment/gone"] },
      [
        "Ready False TargetNotFound",
        "Switched False Watching",
        "AllSourcesDown False Watching",
        "Stalled False NothingToDo",
      ],
    ],
    "a set that can never help": [
      { repositories: ["nginx", "docker.io/library/nginx"] },
      [
        "Ready False NoAlternative",
        "Switched False Watching",
        "AllSourcesDown False Watching",
        "Stalled True NoAlternative",
      ],
    ],
    "a set of which all are disabled": [
      { disabledRepositories: [a, b] },
      [
        "Ready False NoAlternative",
        "Switched False Watching",
        "AllSourcesDown False Watching",
        "Stalled True NoAlternative",
      ],
    ],
    "a set of which only the way back is disabled": [
      { disabledRepositories: [a] },
      ["Ready True Watching", "Switched False Watching", "AllSourcesDown False Watching", "Stalled False NothingToDo"],
    ],
    "a workload that was changed": [
      { roster: [{ ...entry("web"), retargeted }] },
      ["Ready True Switched", "Switched True Switched", "AllSourcesDown False Watching", "Stalled False NothingToDo"],
    ],
    "an older one looks after them": [
      { claimed: 2, roster: [] },
      [
        "Ready True ClaimedByAnother",
        "Switched False Watching",
        "AllSourcesDown False Watching",
        "Stalled True ClaimedByAnother",
      ],
    ],
  }
  for (const [name, [given, expected]] of Object.entries(cases))
    test(name, () => expect(words(given)).toEqual(expected))

  test("name the workload", () => {
    const message = (given: Given, type: string) => told(given).conditions.find(each => each.type === type)?.message
    const elsewhere = { decisions: [decision("web", "Switched", {}, 0)] }
    expect(message(elsewhere, "Switched")).toBe(`deployment/web app from ${b}`)
    expect(message(elsewhere, "Ready")).toBe(`1 of 1: deployment/web app from ${b}`)
    expect(message({ roster: [{ ...entry("web"), retargeted }] }, "Ready")).toBe(
      `1 of 1: deployment/web app from ${b} (the workload was changed)`,
    )
    expect(message({ repositories: [a] }, "Ready")).toBe(`${a}: there is only one repository in this set`)
  })

  test("are of this generation, and keep their time while they say the same", () => {
    const status = told({})
    expect(status.observedGeneration).toBe(4)
    expect(status.conditions.map(each => each.observedGeneration)).toEqual([4, 4, 4, 4])
    const since = (given: Given) => told(given).conditions[0]?.lastTransitionTime
    const old = {
      ...status,
      conditions: status.conditions.map(each => ({ ...each, lastTransitionTime: "2026-01-01T00:00:00Z" })),
    }
    expect(since({ status: old })).toBe("2026-01-01T00:00:00Z")
    expect(since({ status: old, missing: ["x"] })).toBe(formatInstant(now))
  })
})

describe("pods that have been given another source", () => {
  const repair = { do: "repair", pod, container: "app", isInit: false, to: `${b}:1`, reason: "Unreachable" } as const
  const following = decision("web", "Repairing", { repairs: [repair, repair] }, 2)
  const calm = decision("web", "Switched", {}, 0)

  test("are no trouble any more, and those that follow are not reported again", () => {
    const status = told({ decisions: [calm] })
    expect(status.conditions[0]).toMatchObject({ type: "Ready", status: "True", reason: "Switched" })
    expect(told({ status, decisions: [following], accepted: [[following, 2]] })).toEqual(status)
  })
  test("are trouble as long as one of them was not, or waits for its workload to replace it", () => {
    const changing = decision("web", "Repairing", { step, retarget: {} as Retarget }, 2)
    for (const [each, accepted] of [
      [following, 1],
      [changing, 1],
    ] as const)
      expect(told({ decisions: [each], accepted: [[each, accepted]] })).toMatchObject({ incidents: 1 })
  })
})

describe("events", () => {
  test("one for a switch, however many pods", () => {
    const switching = decision("web", "Repairing", { step }, 3)
    expect(storyOf(undefined, [switching], new Map([[switching, 3]]))).toMatchObject([
      { type: "Warning", reason: "Switched", message: `deployment/web app: ${a}:1 → ${b}:1 (Unreachable, 3 writes)` },
    ])
  })
  test("none for what waits by itself, one for what needs a person, and not twice", () => {
    expect(storyOf(undefined, [decision("web", "Confirming")], new Map())).toEqual([])
    const stuck = decision("web", "DigestDiffers", { incident: { ...incident, reason: "DigestDiffers" } })
    expect(storyOf(undefined, [stuck], new Map())).toMatchObject([{ reason: "DigestDiffers" }])
    expect(storyOf(told({ decisions: [stuck] }), [stuck], new Map())).toEqual([])
  })
})
