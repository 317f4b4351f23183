import { describe, expect, test } from "vitest"
import type { Incident, Policy, PullFailure, TargetAvailable } from "#api/v1alpha1/alternateimagesource/index.ts"
import { formatInstant, type Instant } from "#lib/instant.ts"
import type { Resolution } from "#registry/index.ts"
import { decide } from "./decide.ts"
import type { Decision, FailingPod, Group, Probe } from "./group.ts"
import { untold } from "./incident.ts"

// A calm world: three pods of a Deployment have failed for a minute, and both other repositories have the image.

const now = Date.parse("2026-01-01T12:00:00Z")
const seconds = (count: number) => count * 1000
const ago = (count: number) => formatInstant(now - seconds(count))

const [a, b, c] = ["a.example/app", "b.example/app", "c.example/app"]
const digest = (digit: string) => `sha256:${digit.repeat(64)}`

const policy: Policy = {
  apply: "Pod",
  onAuthError: "Ignore",
  requireSameDigest: "IfKnown",
  switchBack: "Never",
  confirmSeconds: 20,
  cooldownSeconds: 60,
  templateShare: "50%",
  overrideGitOps: false,
  disabledRepositories: [],
}

const pod = (name: string, more: Partial<FailingPod> = {}): FailingPod => ({
  key: `shop/${name}`,
  uid: name,
  resourceVersion: "1",
  image: `${a}:1`,
  failure: "Unreachable",
  since: now - seconds(60),
  node: "node-1",
  pullsAlways: false,
  ...more,
})
const three = ["one", "two", "three"].map(name => pod(name))
const threeAt = (repository: string, failure: PullFailure = "Unreachable") =>
  three.map(each => ({ ...each, image: `${repository}:1`, failure }))

const workload: Group["workload"] = {
  type: { group: "apps", kind: "deployment" },
  name: "web",
  namespace: "shop",
  uid: "web-1",
  resourceVersion: "9",
  hasTemplate: true,
  replacesPods: true,
  isGitOps: false,
  isOwned: false,
  matchLabels: { app: "web" },
}

const group: Group = {
  workload,
  container: "app",
  isInit: false,
  image: `${a}:1`,
  repositories: [a, b, c],
  digest: undefined,
  pods: () => 3,
  failing: three,
  held: [],
}

/** Two pods that were sent to the second repository are still there. */
const repaired = { from: `${a}:1`, to: `${b}:1`, reason: "Unreachable" as const, at: now - seconds(30), pods: 2 }

const incident: Incident = {
  since: ago(120),
  reason: "Switched",
  image: `${a}:1`,
  failing: a,
  working: b,
  bad: [a],
  attempts: 0,
}

const entry = (more: Partial<TargetAvailable> = {}): TargetAvailable => ({
  container: "app",
  currentRepository: a,
  name: "web",
  type: workload.type,
  uid: workload.uid,
  ...more,
})

const has = (digit: string): Resolution => ({ ok: true, digest: digest(digit), mediaType: "" })
const says = (kind: Exclude<Resolution, { ok: true }>["class"]): Resolution => ({ ok: false, class: kind, message: "" })

type Given = {
  group?: Partial<Group>
  workload?: Partial<Group["workload"]>
  policy?: Partial<Policy>
  before?: Partial<TargetAvailable>
  /** By repository; both have the image by default. */
  probes?: Record<string, Resolution | undefined>
  probedAt?: Instant
}

function decided(given: Given): Decision {
  const probes: Record<string, Resolution | undefined> = given.probes ?? { [a]: has("1"), [b]: has("1"), [c]: has("1") }
  const probe = (image: string): Probe | undefined => {
    const said = probes[image.replace(/(:1)?(@.*)?$/, "")]
    return said && { at: given.probedAt ?? now - 1000, said }
  }
  return decide(
    { ...group, ...given.group, workload: { ...workload, ...given.workload } },
    { policy: { ...policy, ...given.policy }, before: given.before && entry(given.before), probe, now },
  )
}

/** A decision in one line: which pods go where, what is asked, and when it is looked at again. */
function words({ reason, repairs, retarget, step, asks, lookAgainAt }: Decision): string {
  const to = [...new Set(repairs.map(each => each.to))].join(" ")
  return [
    reason,
    repairs.length > 0 && `${repairs.length} pods to ${to}`,
    retarget && `template to ${retarget.to}`,
    step && `switch ${step.oldImage} → ${step.newImage} (${step.reason})`,
    asks.length > 0 && `asks ${asks.join(" ")}`,
    lookAgainAt !== undefined && `in ${(lookAgainAt - now) / 1000} s`,
  ]
    .filter(Boolean)
    .join(", ")
}

const table = (cases: Record<string, [Given, string]>) => {
  for (const [name, [given, expected]] of Object.entries(cases))
    test(name, () => expect(words(decided(given))).toBe(expected))
}

const to = (repository: string, failure: PullFailure = "Unreachable", from = a) =>
  `Repairing, 3 pods to ${repository}:1, switch ${from}:1 → ${repository}:1 (${failure})`

describe("each class of failure", () => {
  const failing = (failure: PullFailure): Pick<Given, "group"> => ({ group: { failing: threeAt(a, failure) } })
  const absent = { [b]: says("NotFound"), [c]: says("NotFound") }
  const unseen = { [b]: says("ForbiddenAddress"), [c]: says("ForbiddenAddress") }
  for (const failure of ["Unreachable", "TLS", "Timeout", "RateLimited"] as const)
    table({
      [`${failure} is switched`]: [failing(failure), to(b, failure)],
      [`${failure} is switched where no registry may be asked`]: [
        { ...failing(failure), probes: unseen },
        to(b, failure),
      ],
      [`${failure} is not switched where the others lack the image`]: [
        { ...failing(failure), probes: absent },
        "AllSourcesDown, in 60 s",
      ],
    })
  for (const failure of ["NotFound", "NoPlatform"] as const)
    table({
      [`${failure} is switched to a repository that has it`]: [
        { ...failing(failure), probes: { [b]: says("NotFound"), [c]: has("1") } },
        to(c, failure),
      ],
      [`${failure} is no reason to go where no registry may be asked`]: [
        { ...failing(failure), probes: unseen },
        "NotFoundAnywhere, in 60 s",
      ],
      [`${failure} everywhere is a misspelt tag`]: [
        { ...failing(failure), probes: absent },
        "NotFoundAnywhere, in 60 s",
      ],
      [`${failure} here and no other repository answers`]: [
        { ...failing(failure), probes: { [b]: says("NotFound"), [c]: says("Unreachable") } },
        "AllSourcesDown, in 60 s",
      ],
    })
  table({
    "UnknownFailure is switched to a repository that has it": [failing("UnknownFailure"), to(b, "UnknownFailure")],
    "UnknownFailure is no reason to go where no registry may be asked": [
      { ...failing("UnknownFailure"), probes: unseen },
      "AllSourcesDown, in 60 s",
    ],
    "Denied is left alone": [failing("Denied"), "Denied"],
    "Denied is switched where the policy says so": [
      { ...failing("Denied"), policy: { onAuthError: "Switch" } },
      to(b, "Denied"),
    ],
    "SignatureRejected is left alone": [failing("SignatureRejected"), "SignatureRejected"],
    "SignatureRejected is left alone whatever the policy says": [
      {
        ...failing("SignatureRejected"),
        policy: { onAuthError: "Switch", requireSameDigest: "Never", apply: "Template", confirmSeconds: 0 },
      },
      "SignatureRejected",
    ],
    "DiskFull is left alone": [failing("DiskFull"), "DiskFull"],
  })

  const mixed = [pod("one"), pod("two"), pod("three", { failure: "SignatureRejected" })]
  test("a pod whose signature was rejected is not taken along by the others", () => {
    const { repairs } = decided({ group: { failing: mixed } })
    expect(repairs.map(({ pod: { uid } }) => uid)).toEqual(["one", "two"])
  })
  test("where pods have different images, message and step name the one that most have", () => {
    const failing = [pod("one", { image: `${c}:1` }), pod("two"), pod("three")]
    const waits = decided({ group: { failing: failing.map(each => ({ ...each, since: now })) } })
    expect(waits.message).toContain(`3 pods cannot pull ${a}:1 (Unreachable)`)
    const { message, step } = decided({ group: { failing } })
    expect(message).toContain(`${a}:1 cannot be pulled`)
    expect(step?.oldImage).toBe(`${a}:1`)
  })
  test("nor sent after them later", () => {
    const { repairs, reason } = decided({ group: { failing: mixed }, before: { incident } })
    expect([reason, ...repairs.map(({ pod: { uid } }) => uid)]).toEqual(["Repairing", "one", "two"])
  })
  table({
    "and a template is not changed for such a pod": [
      { group: { failing: mixed }, policy: { apply: "Template" } },
      `SignatureRejected, 2 pods to ${b}:1, switch ${a}:1 → ${b}:1 (Unreachable)`,
    ],
  })
})

describe("patience", () => {
  const since = (count: number) => ({ failing: [pod("one", { since: now - seconds(count) })] })
  const last = (count: number) => ({
    switches: [{ oldImage: `${c}:1`, newImage: `${a}:1`, time: ago(count) }],
  })
  table({
    "a blip is waited out": [{ group: since(5) }, "Confirming, in 15 s"], // the first repository has the image
    "a rate limit is believed at once": [
      { group: { failing: [pod("one", { since: now, failure: "RateLimited" })] } },
      `Repairing, 1 pods to ${b}:1, switch ${a}:1 → ${b}:1 (RateLimited)`,
    ],
    "the first that failed counts": [{ group: { failing: [pod("one", { since: now }), ...three.slice(1)] } }, to(b)],
    "without confirmSeconds nothing is waited for": [
      { group: since(0), policy: { confirmSeconds: 0 } },
      `Repairing, 1 pods to ${b}:1, switch ${a}:1 → ${b}:1 (Unreachable)`,
    ],
    "a switch is given its time": [{ before: last(45) }, "CoolingDown, in 15 s"],
    "a rate limit does not shorten it": [
      { group: { failing: threeAt(a, "RateLimited") }, before: last(45) },
      "CoolingDown, in 15 s",
    ],
    "after its time the next may come": [{ before: last(60) }, to(b)],
    "the times of another workload of the same name do not count": [{ before: { ...last(45), uid: "web-0" } }, to(b)],
    "a write that the server refused is not tried again before its time": [
      { group: { refusal: { reason: "Forbidden", retryAt: now + seconds(15) } } },
      "Forbidden, in 15 s",
    ],
    "nor for pods that only follow": [
      {
        group: { refusal: { reason: "Forbidden", retryAt: now + seconds(15) } },
        before: { incident },
      },
      "Forbidden, in 15 s",
    ],
    "then it is": [{ group: { refusal: { reason: "Forbidden", retryAt: now } } }, to(b)],
  })
})

describe("a failure that our own question shows needs no further wait", () => {
  const early = (failure: PullFailure, own: Resolution | undefined, more: Given = {}): Given => ({
    ...more,
    group: { failing: [pod("one", { since: now - seconds(3), failure })], ...more.group },
    probes: { [b]: has("1"), [c]: has("1"), ...more.probes, [a]: own },
  })
  const switched = (failure: PullFailure, repository = b) =>
    `Repairing, 1 pods to ${repository}:1, switch ${a}:1 → ${repository}:1 (${failure})`
  const waits = "Confirming, in 17 s"
  for (const [failure, ...classes] of [
    ["Unreachable", "Unreachable", "Timeout", "TLS"],
    ["Timeout", "Unreachable", "Timeout"],
    ["TLS", "TLS", "Unreachable"],
    ["NotFound", "NotFound"],
    ["UnknownFailure", "NotFound", "Unreachable"],
  ] as const)
    for (const kind of classes)
      table({ [`${failure} for the kubelet, ${kind} for us`]: [early(failure, says(kind)), switched(failure)] })
  table({
    "the first question is whether it still fails": [
      early("Unreachable", undefined, { probes: { [b]: undefined, [c]: undefined } }),
      `Probing, asks ${a}:1 ${b}:1 ${c}:1, in 17 s`,
    ],
    "an answer from before says nothing": [
      { ...early("Unreachable", says("Unreachable")), probedAt: now - seconds(2) },
      `Probing, asks ${a}:1, in 17 s`,
    ],
    "it serves us: the kubelet's failure has to last": [early("Unreachable", has("1")), waits],
    "it says something else to us": [early("Unreachable", says("NotFound")), waits],
    "it limits us: that is our own doing": [early("Unreachable", says("RateLimited")), waits],
    "it may not be asked": [early("Unreachable", says("ForbiddenAddress")), waits],
    "its answer does not show platforms": [early("NoPlatform", has("1")), waits],
    "refused credentials, where the policy has them switched": [
      early("Denied", says("Denied"), { policy: { onAuthError: "Switch" } }),
      switched("Denied"),
    ],
    "nowhere else was the image seen": [
      early("Unreachable", says("Unreachable"), {
        probes: { [b]: says("ForbiddenAddress"), [c]: says("ForbiddenAddress") },
      }),
      waits,
    ],
    "the others are down, which may pass as well": [
      early("Unreachable", says("Unreachable"), { probes: { [b]: says("Timeout"), [c]: says("Timeout") } }),
      waits,
    ],
    "only another one has the same bits": [
      early("Unreachable", says("Unreachable"), { group: { digest: digest("2") }, probes: { [c]: has("2") } }),
      switched("Unreachable", c),
    ],
    "after the whole wait, what was bad is asked again": [
      {
        probes: { [a]: has("1"), [b]: says("Timeout"), [c]: has("1") },
        group: { failing: [pod("one", { since: now - seconds(20) })] },
        probedAt: now - seconds(18),
      },
      `Probing, asks ${b}:1`,
    ],
    "a cool-down is not shortened": [
      early("Unreachable", says("Unreachable"), {
        before: { switches: [{ oldImage: `${c}:1`, newImage: `${a}:1`, time: ago(45) }] },
      }),
      "CoolingDown, in 15 s",
    ],
  })
})

describe("pods that their node holds back", () => {
  const held = [pod("held")].map(({ failure: _, ...waiting }) => waiting)
  table({
    "are no trouble by themselves": [{ group: { failing: [], held } }, "Watching"],
    "go with the first that is switched": [
      { group: { held } },
      `Repairing, 4 pods to ${b}:1, switch ${a}:1 → ${b}:1 (Unreachable)`,
    ],
    "follow where it works": [{ group: { failing: [], held }, before: { incident } }, `Repairing, 1 pods to ${b}:1`],
    "stay where it works": [
      {
        group: { repaired, failing: [], held: held.map(each => ({ ...each, image: `${b}:1` })) },
        before: { incident },
      },
      "Switched",
    ],
    "do not decide anything": [{ group: { failing: [pod("one", { since: now })], held } }, "Confirming, in 1.9 s"],
  })
})

describe("where to", () => {
  table({
    "the next in the order of the spec": [{ group: { repositories: [c, a, b] } }, to(c)],
    "not what is disabled": [{ policy: { disabledRepositories: [b] } }, to(c)],
    "nowhere if that was all": [
      { group: { repositories: [a, b] }, policy: { disabledRepositories: [b] } },
      "AllSourcesDown, in 60 s",
    ],
    "not where it is already, however it is spelt": [
      {
        group: {
          image: "web:1",
          repositories: ["docker.io/library/web", b],
          failing: [pod("one", { image: "web:1" })],
        },
      },
      `Repairing, 1 pods to ${b}:1, switch web:1 → ${b}:1 (Unreachable)`,
    ],
    "on from where it was sent, and not back": [
      { group: { failing: threeAt(b) }, before: { incident } },
      to(c, "Unreachable", b),
    ],
    "what was found bad is not tried again": [
      { group: { failing: threeAt(c) }, before: { incident: { ...incident, working: c, bad: [a, b] } } },
      "AllSourcesDown, in 60 s",
    ],
    "round again after a rest": [
      {
        group: { failing: threeAt(c) },
        before: { incident: { ...incident, working: c, bad: [a, b, c], attempts: 1, tryAgainAt: ago(1) } },
      },
      to(a, "Unreachable", c),
    ],
    "but not with a template: each try is a rollout": [
      {
        policy: { apply: "Template" },
        group: { image: `${c}:1`, failing: threeAt(c) },
        before: {
          incident: {
            ...incident,
            image: `${c}:1`,
            failing: c,
            working: undefined,
            bad: [a, b, c],
            tryAgainAt: ago(1),
          },
        },
      },
      "AllSourcesDown, in 60 s",
    ],
  })

  test("tag and digest go along byte for byte", () => {
    const image = `${a}:1@${digest("1")}`
    const { step } = decided({ group: { image, failing: [pod("one", { image })] } })
    expect(step?.newImage).toBe(`${b}:1@${digest("1")}`)
  })

  describe("where the same bits are a must", () => {
    const pin: Given = { group: { digest: digest("1") }, policy: { requireSameDigest: "Always" } }
    test("the digest is written behind the tag, and new pods get it too", () => {
      const { repairs, incident: next } = decided(pin)
      expect(repairs[0]?.to).toBe(`${b}:1@${digest("1")}`)
      expect(next).toMatchObject({ working: b, pin: digest("1") })
    })
    test("and for those that follow", () => {
      const { repairs } = decided({ ...pin, before: { incident: { ...incident, pin: digest("1") } } })
      expect(repairs[0]?.to).toBe(`${b}:1@${digest("1")}`)
    })
    test("and in a template, which is then known again", () => {
      const { retarget } = decided({ ...pin, policy: { ...pin.policy, apply: "Template" } })
      expect(retarget?.to).toBe(`${b}:1@${digest("1")}`)
      const image = retarget!.to
      const { incident: next } = decided({
        group: { image, failing: [] },
        before: {
          incident: { ...incident, pin: digest("1") },
          switches: [{ oldImage: `${a}:1`, newImage: image, time: ago(5) }],
        },
      })
      expect(next).toMatchObject({ image, failing: b, bad: [a] })
    })
    test("and it is known from the pods alone, where no status has it", () => {
      const repaired = { from: `${a}:1`, to: `${b}:1@${digest("1")}`, reason: "Unreachable" as const, at: now, pods: 1 }
      const { repairs } = decided({ ...pin, group: { ...pin.group, repaired } })
      expect(repairs[0]?.to).toBe(`${b}:1@${digest("1")}`)
    })
    test("elsewhere the tag stays as it is", () =>
      expect(decided({ group: { digest: digest("1") } }).repairs[0]?.to).toBe(`${b}:1`))
  })

  test("it is said which repository has other bits, and what they are", () => {
    const { message } = decided({
      group: { digest: digest("1") },
      probes: { [b]: has("2"), [c]: says("NotFound") },
    })
    expect(message).toBe(
      `deployment/web app: 3 pods cannot pull ${a}:1 (Unreachable); ${b} has other bits (sha256:222222222222) than sha256:111111111111`,
    )
  })

  test("what was found bad is remembered once, however it is spelt", () => {
    const spelt = { ...incident, failing: "web", image: "web:1", working: undefined, bad: ["docker.io/library/web"] }
    const failing = [pod("one", { image: "web:1" })]
    const { incident: next } = decided({
      group: { image: "web:1", repositories: ["web", b], failing },
      before: { incident: spelt },
    })
    expect(next?.bad).toEqual(["docker.io/library/web"])
  })
})

describe("probes", () => {
  const pinned = (digit: string) => ({
    image: `${a}:1@${digest(digit)}`,
    failing: [pod("one", { image: `${a}:1@${digest(digit)}` })],
  })
  table({
    "are asked for first": [{ probes: {} }, `Probing, asks ${b}:1 ${c}:1`],
    "one that is missing is waited for": [{ probes: { [b]: has("1") } }, `Probing, asks ${c}:1`],
    "older than a minute they are asked again": [{ probedAt: now - seconds(60) }, `Probing, asks ${b}:1 ${c}:1`],
    "after a rest they are asked again, however young": [
      {
        probedAt: now - seconds(30),
        before: { incident: { ...incident, working: undefined, attempts: 1, tryAgainAt: ago(1) } },
      },
      `Probing, asks ${b}:1 ${c}:1`,
    ],
    "are not asked about what is disabled": [
      { probes: {}, policy: { disabledRepositories: [b] } },
      `Probing, asks ${c}:1`,
    ],
    "are made of the others while it may be a hiccup": [
      { probes: {}, group: { failing: [pod("one", { since: now })] } },
      `Confirming, asks ${b}:1 ${c}:1, in 1.9 s`,
    ],
    "or while it is confirmed, where that is shorter": [
      { probes: {}, group: { failing: [pod("one", { since: now })] }, policy: { confirmSeconds: 1 } },
      `Confirming, asks ${b}:1 ${c}:1, in 1 s`,
    ],
    "are not made while it cools down": [
      {
        probes: {},
        group: { failing: [pod("one", { since: now })] },
        before: { switches: [{ oldImage: `${c}:1`, newImage: `${a}:1`, time: ago(45) }] },
      },
      "Confirming, in 1.9 s",
    ],
    "one that is down is passed by": [{ probes: { [b]: says("Unreachable"), [c]: has("1") } }, to(c)],
    "what was seen goes before what could not be asked": [
      { probes: { [b]: says("ForbiddenAddress"), [c]: has("1") } },
      to(c),
    ],
    "where nothing could be seen, a pod may try": [
      { probes: { [b]: says("ForbiddenAddress"), [c]: says("NotFound") } },
      to(b),
    ],
    "other bits than were seen running are passed by": [
      { group: { digest: digest("1") }, probes: { [b]: has("2"), [c]: has("1") } },
      to(c),
    ],
    "other bits everywhere": [
      { group: { digest: digest("1") }, probes: { [b]: has("2"), [c]: has("2") } },
      "DigestDiffers, in 60 s",
    ],
    "other bits, and the policy does not mind": [
      {
        group: { digest: digest("1") },
        probes: { [b]: has("2"), [c]: has("1") },
        policy: { requireSameDigest: "Never" },
      },
      to(b),
    ],
    "nothing is known of the bits, and the policy insists": [
      { policy: { requireSameDigest: "Always" } },
      "DigestUnknown, in 60 s",
    ],
    "no registry may be asked, and the policy insists": [
      {
        policy: { requireSameDigest: "Always" },
        probes: { [b]: says("ForbiddenAddress"), [c]: says("ForbiddenAddress") },
      },
      "AllSourcesDown, in 60 s",
    ],
    "no registry may be asked, and the bits are known": [
      {
        group: { digest: digest("1") },
        probes: { [b]: says("ForbiddenAddress"), [c]: says("ForbiddenAddress") },
      },
      "AllSourcesDown, in 60 s",
    ],
    "no registry may be asked, the bits are known, and the policy does not mind": [
      {
        group: { digest: digest("1") },
        probes: { [b]: says("ForbiddenAddress"), [c]: says("ForbiddenAddress") },
        policy: { requireSameDigest: "Never" },
      },
      to(b),
    ],
    "no registry may be asked, and the node checks the digest": [
      {
        group: { ...pinned("1"), digest: digest("1") },
        probes: { [b]: says("ForbiddenAddress"), [c]: says("ForbiddenAddress") },
        policy: { requireSameDigest: "Always" },
      },
      `Repairing, 1 pods to ${b}:1@${digest("1")}, switch ${a}:1@${digest("1")} → ${b}:1@${digest("1")} (Unreachable)`,
    ],
    "the digest in the image counts before what was seen": [
      { group: { ...pinned("2"), digest: digest("1") }, probes: { [b]: has("1"), [c]: has("2") } },
      `Repairing, 1 pods to ${c}:1@${digest("2")}, switch ${a}:1@${digest("2")} → ${c}:1@${digest("2")} (Unreachable)`,
    ],
    "a closed one needs a secret": [
      { probes: { [b]: says("Denied"), [c]: says("NotFound") } },
      "SecretMissing, in 60 s",
    ],
    "a closed one, and one that is down": [
      { probes: { [b]: says("Denied"), [c]: says("Timeout") } },
      "AllSourcesDown, in 60 s",
    ],
  })
})

describe("all down", () => {
  const down = { [b]: says("Unreachable"), [c]: says("Unreachable") }
  const again = (attempts: number, tryAgainAt?: string): Incident => ({
    ...incident,
    working: undefined,
    reason: "AllSourcesDown",
    attempts,
    tryAgainAt,
  })
  for (const [attempts, wait] of [60, 120, 240, 480, 900, 900].entries())
    table({
      [`after ${attempts} times it is asked again in ${wait} s`]: [
        { probes: down, before: { incident: again(attempts) } },
        `AllSourcesDown, in ${wait} s`,
      ],
    })
  table({
    "rests until then": [
      { before: { incident: again(3, formatInstant(now + seconds(42))) } },
      "AllSourcesDown, in 42 s",
    ],
    "rests under the name it has": [
      {
        before: {
          incident: { ...again(3, formatInstant(now + seconds(42))), reason: "NotFoundAnywhere" },
        },
      },
      "NotFoundAnywhere, in 42 s",
    ],
    "goes when one of them is back": [{ before: { incident: again(3, ago(1)) } }, to(b)],
  })
  test("counts no further than its status does", () =>
    expect(decided({ probes: down, before: { incident: again(999) } }).incident?.attempts).toBe(999))
})

describe("further pods of an incident", () => {
  table({
    "go where it works, without a switch": [{ before: { incident } }, `Repairing, 3 pods to ${b}:1`],
    "also soon after the switch, and unconfirmed": [
      {
        group: { failing: [pod("late", { since: now })] },
        before: { incident, switches: [{ oldImage: `${a}:1`, newImage: `${b}:1`, time: ago(1) }] },
      },
      `Repairing, 1 pods to ${b}:1`,
    ],
    "where it works no longer, all go on together": [
      { group: { failing: [pod("one"), pod("two", { image: `${b}:1` })] }, before: { incident } },
      `Repairing, 2 pods to ${c}:1, switch ${b}:1 → ${c}:1 (Unreachable)`,
    ],
  })
})

describe("an incident is over", () => {
  table({
    "when its user deploys another image": [
      {
        group: { image: `${a}:2`, failing: [] },
        before: { incident },
      },
      "Watching",
    ],
    "and another failure is another incident": [
      {
        group: { image: `${b}:1`, failing: threeAt(b) },
        before: { incident: { ...incident, image: `${c}:1`, failing: c, working: undefined } },
      },
      to(a, "Unreachable", b),
    ],
    "when the pull succeeded before anything was done": [
      { group: { failing: [] }, before: { incident: { ...incident, working: undefined, bad: [] } } },
      "Watching",
    ],
    "not because no pod fails: what runs from elsewhere stays there": [
      { group: { repaired, failing: [] }, before: { incident } },
      "Switched",
    ],
    "when all repaired pods were replaced, and the new ones do not fail": [
      { group: { failing: [] }, before: { incident: { ...incident, since: ago(601) } } },
      "Watching",
    ],
    "not while a repaired pod is left": [
      {
        group: { failing: [], repaired: { ...repaired, at: now - seconds(601) } },
        before: { incident: { ...incident, since: ago(601) } },
      },
      "Switched",
    ],
    "not while there are no pods: the next ones need it": [
      { group: { failing: [], pods: () => 0 }, before: { incident: { ...incident, since: ago(601) } } },
      "Switched, in 600 s",
    ],
    "when its workload was made anew": [{ group: { failing: [] }, before: { incident, uid: "web-0" } }, "Watching"],
  })
})

describe("what pods record of a repair that no status has", () => {
  const probing: Incident = { ...incident, working: undefined, reason: "Probing" }
  table({
    "is an incident": [{ group: { repaired, failing: [] } }, "Switched"],
    "where the others go": [{ group: { repaired } }, `Repairing, 3 pods to ${b}:1`],
    "also if the status had come to asking": [
      { group: { repaired }, before: { incident: probing } },
      `Repairing, 3 pods to ${b}:1`,
    ],
    "and its time counts": [
      { group: { repaired, failing: threeAt(b) }, before: { incident: probing } },
      "CoolingDown, in 30 s",
    ],
    "not after they were sent back": [
      {
        group: { repaired, failing: [] },
        before: { switches: [{ oldImage: `${b}:1`, newImage: `${a}:1`, time: ago(10), reason: "SwitchedBack" }] },
      },
      "Watching",
    ],
  })
  test("is recorded once", () => {
    const known = { ...group, repaired }
    expect(untold(known, undefined)).toBe(repaired)
    const told = entry({ switches: [{ oldImage: `${a}:1`, newImage: `${b}:1`, time: ago(40) }] })
    expect(untold(known, told)).toBeUndefined()
  })
})

describe("the template", () => {
  const template = (given: Given): Given => ({ ...given, policy: { apply: "Template", ...given.policy } })
  const changed = `Repairing, template to ${b}:1, switch ${a}:1 → ${b}:1 (Unreachable)`
  const onlyPods = (reason: string) => `${reason}, 3 pods to ${b}:1, switch ${a}:1 → ${b}:1 (Unreachable)`
  table({
    "is changed, and makes new pods by itself": [template({}), changed],
    "is changed, and the pods that stay are repaired": [
      template({ workload: { replacesPods: false } }),
      `Repairing, 3 pods to ${b}:1, template to ${b}:1, switch ${a}:1 → ${b}:1 (Unreachable)`,
    ],
    "is changed at the share": [template({ group: { pods: () => 6 } }), changed],
    "is left alone below it": [template({ group: { pods: () => 7 } }), onlyPods("PartOfPodsFails")],
    "is left alone below any share": [
      template({ group: { pods: () => 4 }, policy: { templateShare: "100%" } }),
      onlyPods("PartOfPodsFails"),
    ],
    "is left alone for pods of an older one": [
      template({ group: { image: `${c}:1`, pods: () => 3 } }),
      onlyPods("PartOfPodsFails"),
    ],
    "is left alone under GitOps": [template({ workload: { isGitOps: true } }), onlyPods("ManagedByGitOps")],
    "is changed under GitOps where the policy says so": [
      template({ workload: { isGitOps: true }, policy: { overrideGitOps: true } }),
      changed,
    ],
    "is left alone if another object owns it": [template({ workload: { isOwned: true } }), onlyPods("OwnedByAnother")],
    "cannot be changed if there is none": [template({ workload: { hasTemplate: false } }), onlyPods("OwnedByAnother")],
  })

  describe("of a StatefulSet", () => {
    const [old, next] = ["web-old", "web-new"]
    const set = (given: Given): Given =>
      template({
        ...given,
        workload: { replacesPods: false, hasRevisions: true, revision: old, ...given.workload },
      })
    const made = threeAt(a).map(each => ({ ...each, revision: old }))
    const changed = (revision: string | undefined, secondsAgo = 1): Given =>
      set({
        workload: { revision },
        group: {
          image: `${b}:1`,
          failing: made,
          retargeted: {
            ...{ from: `${a}:1`, to: `${b}:1`, reason: "Unreachable", pods: 0, revision: old },
            at: now - seconds(secondsAgo),
          },
        },
        before: { incident, switches: [{ oldImage: `${a}:1`, newImage: `${b}:1`, time: ago(secondsAgo) }] },
      })
    table({
      "is changed first": [set({}), `Repairing, template to ${b}:1, switch ${a}:1 → ${b}:1 (Unreachable)`],
      "is seen by its controller before the pods are repaired": [changed(undefined), "Repairing, in 4 s"],
      "has its new name waited for": [changed(old), "Repairing, in 4 s"],
      "has its pods repaired then": [changed(next), `Repairing, 3 pods to ${b}:1`],
      "has its pods repaired also if that takes too long": [changed(old, 5), `Repairing, 3 pods to ${b}:1`],
    })
    const revisions = (given: Given) => decided(given).repairs.map(({ revision }) => revision)
    test("has its pods made its own", () => expect(revisions(changed(next))).toEqual([next, next, next]))
    test("leaves pods of yet another template to its controller", () => {
      const given = changed(next)
      const failing = made.map((each, index) => (index === 0 ? { ...each, revision: "web-older" } : each))
      expect(revisions({ ...given, group: { ...given.group, failing } })).toEqual([undefined, next, next])
    })
  })

  const moved: Given = {
    group: { image: `${b}:1`, failing: threeAt(a) },
    before: { incident, switches: [{ oldImage: `${a}:1`, newImage: `${b}:1`, time: ago(30) }] },
  }
  table({
    "that was changed has its time to replace the pods": [template(moved), "Repairing, in 30 s"],
    "that replaces no pod has its pods repaired after it": [
      template({
        ...moved,
        before: { incident, switches: [{ oldImage: `${a}:1`, newImage: `${b}:1`, time: ago(60) }] },
      }),
      `Repairing, 3 pods to ${b}:1`,
    ],
    "that was changed is remembered while its new pods begin": [
      template({ ...moved, group: { image: `${b}:1`, failing: [] } }),
      "Switched, in 570 s",
    ],
    "that was changed goes on when that fails too, and not back": [
      template({
        group: { image: `${b}:1`, failing: threeAt(b) },
        before: { incident, switches: [{ oldImage: `${a}:1`, newImage: `${b}:1`, time: ago(90) }] },
      }),
      `Repairing, template to ${c}:1, switch ${b}:1 → ${c}:1 (Unreachable)`,
    ],
    "that was changed without a status is known by itself": [
      template({
        group: {
          image: `${b}:1`,
          failing: threeAt(b),
          retargeted: { from: `${a}:1`, to: `${b}:1`, reason: "Unreachable", at: now - seconds(30), pods: 0 },
        },
        before: { incident: { ...incident, working: undefined, reason: "Probing" } },
      }),
      "CoolingDown, in 30 s",
    ],
  })
})

describe("the way back", () => {
  const back = (given: Given): Given => ({
    ...given,
    policy: { switchBack: "WhenHealthy", ...given.policy },
    group: { repaired, failing: [], ...given.group },
    before: { incident, ...given.before },
  })
  const well = (count: number) => ({ incident: { ...incident, healthySince: ago(count) } })
  table({
    "is not looked for by itself": [{ group: { repaired, failing: [] }, before: { incident } }, "Switched"],
    "begins with a question": [back({ probes: {} }), `Switched, asks ${a}:1`],
    "waits until the first repository has been well for ten minutes": [back({}), "Switched, in 299 s"],
    "is taken then": [back({ before: well(600) }), `SwitchedBack, switch ${b}:1 → ${a}:1 (SwitchedBack)`],
    "begins anew when it is not well": [
      back({ before: well(599), probes: { [a]: says("Unreachable") } }),
      "Switched, in 299 s",
    ],
    "is asked about again every five minutes": [
      back({ before: well(300), probedAt: now - seconds(300) }),
      `Switched, asks ${a}:1, in 300 s`,
    ],
  })
  test("is forgotten with the first bad answer", () =>
    expect(decided(back({ before: well(599), probes: { [a]: says("Unreachable") } })).incident).not.toHaveProperty(
      "healthySince",
    ))
  test("ends the incident, and touches no pod", () => {
    const { incident: next, repairs } = decided(back({ before: well(600) }))
    expect([next, repairs]).toEqual([undefined, []])
  })
})

test("a new incident has since when, why, and how its pods are known", () => {
  expect(decided({ probes: {} }).incident).toEqual({
    since: ago(60),
    reason: "Probing",
    image: `${a}:1`,
    failing: a,
    bad: [a],
    attempts: 0,
    matchLabels: { app: "web" },
  })
})

test("what is repaired carries what it was decided from", () => {
  const { repairs } = decided({ group: { isInit: true } })
  expect(repairs[0]).toMatchObject({ pod: { uid: "one", resourceVersion: "1" }, container: "app", isInit: true })
})
