import { randomBytes } from "node:crypto"
import { mkdtempSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from "vitest"
import { maxTiers, type Phase, ServiceImage, supersedeAnnotation } from "#api/v1alpha1/serviceimage/index.ts"
import { type Answer, ask } from "#test/support/ask.ts"
import { installKinds, serviceImagePath } from "#test/support/fleet.ts"
import { floor, type Json, until } from "#test/support/floor.ts"
import { run } from "#tools/kube/command.ts"
import { repository } from "#tools/kube/folders.ts"

const app = (tag: string) => `registry.example.com/app:${tag}`
const early = { upgradeTier: "early", image: app("v2"), priority: 1 }
const late = { upgradeTier: "late" }
/** Tiers with an image of their own, with the default one, and objects of no tier. */
const calm = {
  target: { apiVersion: "services.example.com/v1alpha1", kind: "Dicom", selector: { matchLabels: { fleet: "a" } } },
  defaultImage: app("v1"),
  tiers: [early, late],
}
const withTarget = (fields: Json) => ({ target: { ...calm.target, ...fields } })

/** Changes of what is rolled out, and how a refusal names them. */
const guarded: Record<string, { spec: Json; says: string }> = {
  "the default image": { spec: { defaultImage: app("v3") }, says: 'the image of tier "late" and of others changes' },
  "a tier's image": {
    spec: { tiers: [{ ...early, image: app("v3") }, late] },
    says: 'the image of tier "early" changes',
  },
  "a tier goes to the default image": {
    spec: { tiers: [{ ...early, image: "" }, late] },
    says: 'the image of tier "early" changes',
  },
  "a tier is added": {
    spec: { tiers: [early, late, { upgradeTier: "new" }] },
    says: 'the image of tier "new" changes',
  },
  "a tier is removed": { spec: { tiers: [early] }, says: 'the image of tier "late" changes' },
  "two tiers swap their images": {
    spec: { tiers: [late, early].map((tier, i) => ({ ...tier, image: app(`v${2 - i}`) })) },
    says: 'the image of tier "late" and of others changes',
  },
  "objects of no tier get an image": {
    spec: { tiers: [early, late, { upgradeTier: "", image: app("v3") }] },
    says: 'the image of tier "" changes',
  },
  "objects of no tier are left alone": {
    spec: { defaultImage: "", tiers: [early, { ...late, image: app("v1") }] },
    says: 'the image of tier "" changes',
  },
  "the target's selector": { spec: withTarget({ selector: {} }), says: "spec.target changes" },
  "the target's version": { spec: withTarget({ apiVersion: "services.example.com/v1" }), says: "spec.target changes" },
  "the target's image paths": { spec: withTarget({ image: { paths: ["spec.main"] } }), says: "spec.target changes" },
  "the target's health": { spec: withTarget({ health: "true" }), says: "spec.target changes" },
  "target and image": {
    spec: { ...withTarget({ selector: {} }), tiers: [{ ...early, image: app("v3") }, late] },
    says: 'spec.target and the image of tier "early" changes',
  },
  "serialize and an image in one write": {
    spec: { serialize: "Allow", tiers: [{ ...early, image: app("v3") }, late] },
    says: 'the image of tier "early" changes',
  },
}

/** Changes of how and when. */
const free: Record<string, { spec?: Json; metadata?: Json }> = {
  nothing: {},
  labels: { metadata: { labels: { team: "a" } } },
  "an approval": { metadata: { annotations: { "autoimagemanager.io/approved": "{}" } } },
  paused: { spec: { paused: true } },
  pace: { spec: { pace: { podsPerSecond: 1 } } },
  "what a failure does": { spec: { onFailure: "Rollback" } },
  priorities: { spec: { tiers: [early, { ...late, priority: 7 }] } },
  "steps, deadlines and limits": {
    spec: {
      tiers: [
        { ...early, steps: [{ percent: 1 }], maxConcurrent: 1, failureBudget: 1, requireApproval: true },
        { ...late, progressDeadlineSeconds: 7 },
      ],
    },
  },
  "the order of tiers": { spec: { tiers: [late, early] } },
  "the default image, written in its tier": { spec: { tiers: [early, { ...late, image: app("v1") }] } },
  "a tier for objects of no tier, with the image they have": {
    spec: { tiers: [early, late, { upgradeTier: "", priority: -1 }] },
  },
  serialize: { spec: { serialize: "Allow" } },
}

const operation = (phase: Phase) => ({ id: "g1", startedAt: "2026-01-31T12:00:00Z", phase })
const inProgress = { observedGeneration: 1, operation: operation("InProgress") }
const moments: Record<string, { status?: Json; isInProgress: boolean; says?: string }> = {
  "it was not observed yet": { isInProgress: true, says: "generation 1 has not been observed by the controller" },
  "its last change was not observed yet": {
    status: { observedGeneration: 0, operation: operation("Complete") },
    isInProgress: true,
    says: "generation 1 has not been observed by the controller",
  },
  "the status is of another life": {
    status: { observedGeneration: 7, operation: operation("Complete") },
    isInProgress: true,
    says: "generation 1 has not been observed by the controller",
  },
  InProgress: {
    status: inProgress,
    isInProgress: true,
    says: "operation g1 is in progress",
  },
  RollingBack: {
    status: { observedGeneration: 1, operation: operation("RollingBack") },
    isInProgress: true,
    says: "operation g1 is being rolled back",
  },
  Halted: { status: { observedGeneration: 1, operation: operation("Halted") }, isInProgress: false },
  Complete: { status: { observedGeneration: 1, operation: operation("Complete") }, isInProgress: false },
  RolledBack: { status: { observedGeneration: 1, operation: operation("RolledBack") }, isInProgress: false },
  "seen, and nothing started": { status: { observedGeneration: 1 }, isInProgress: false },
}
const modes = { Enforce: "refused", Warn: "warned", Allow: "accepted" } as const

const policyPath = "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies"
let policyNames: string[] = []

beforeAll(async () => {
  await installKinds()
  const printed = await run(join(repository, "bin/aim"), ["manifests", "policies"])
  const folder = mkdtempSync(join(tmpdir(), "aim-policies-"))
  const file = join(folder, "policies.yaml")
  writeFileSync(file, printed)
  const applied = await floor().kubectlRun("apply", "-f", file, "-o", "name")
  rmSync(folder, { recursive: true })
  policyNames = applied
    .split("\n")
    .flatMap(line => /^validatingadmissionpolicy\.[^/]*\/(aim-serviceimage-serialize-.*)$/.exec(line)?.[1] ?? [])
  expect(policyNames).toHaveLength(2)
  // Stored is not yet in force: the server learns of its own policies by a watch.
  const name = await stored({ serialize: "Enforce" })
  const other = await stored({ serialize: "Warn" })
  await until("the policies to be in force", async () => {
    const change = { defaultImage: app("v3") }
    return outcome(await tryOut(name, change)) === "refused" && outcome(await tryOut(other, change)) === "warned"
  })
  await remove([name, other])
})
afterAll(async () => {
  const kinds = ["validating", "mutating"].map(each => `${each}admissionpolicybinding,${each}admissionpolicy`).join(",")
  await floor().kubectlRun("delete", kinds, "--selector=app.kubernetes.io/part-of=autoimagemanager")
})

test("the server finds nothing wrong with the expressions and the types they meet", async () => {
  for (const name of policyNames) {
    const { status } = await until(`${name} to be checked`, async () => {
      const policy = await floor().api.get(`${policyPath}/${name}`)
      return policy.status?.observedGeneration === policy.metadata.generation && policy
    })
    expect(status.typeChecking).toEqual({})
  }
})

describe.each(Object.entries(modes))("serialize: %s", (serialize, verdict) => {
  test.each(Object.entries(moments))("%s", async (_, { status, isInProgress, says }) => {
    const name = await forThisTest(serialize, status)
    const expected = isInProgress ? verdict : "accepted"
    for (const [change, { spec, says: what }] of Object.entries(guarded)) {
      const answer = await tryOut(name, spec)
      expect({ [change]: outcome(answer) }).toEqual({ [change]: expected })
      if (expected !== "accepted") expect(wordsOf(answer)).toContain(`${what} while ${says}`)
    }
    for (const [change, { spec, metadata }] of Object.entries(free))
      expect({ [change]: outcome(await tryOut(name, spec, metadata)) }).toEqual({ [change]: "accepted" })
  })
})

test("a refusal says what to do, and doing it works once", async () => {
  const name = await forThisTest("Enforce", inProgress)
  const path = serviceImagePath(name)
  const change = (tag: string, generation?: string) =>
    ask("PATCH", path, {
      ...(generation !== undefined && { metadata: { annotations: { [supersedeAnnotation]: generation } } }),
      spec: { defaultImage: app(tag) },
    })

  const refused = await change("v3")
  expect(refused.status).toBe(422)
  expect(refused.body.message).toContain(
    `while operation g1 is in progress: wait for it (aim wait si/${name}), or overtake it: aim set-image --supersede, or annotate autoimagemanager.io/supersede: "1"`,
  )
  for (const wrong of ["", "0", "2", "true", "g1"]) expect(outcome(await change("v3", wrong))).toBe("refused")
  expect((await floor().api.get(path)).spec.defaultImage).toBe(app("v1"))

  expect(outcome(await change("v3", "1"))).toBe("accepted")
  expect((await floor().api.get(path)).metadata.generation).toBe(2)
  // The annotation is still there, and names a generation that is past.
  expect(outcome(await change("v4"))).toBe("refused")
  expect(outcome(await change("v4", "2"))).toBe("accepted")
})

test("a default image that no object gets may change", async () => {
  const spec = { tiers: [early, { upgradeTier: "", image: app("v1") }] }
  const name = await forThisTest("Enforce", inProgress, spec)
  expect(outcome(await tryOut(name, { defaultImage: app("v3") }))).toBe("accepted")
  expect(outcome(await tryOut(name, { defaultImage: "" }))).toBe("accepted")
})

test("a change that is said to be meant is not warned of", async () => {
  const name = await forThisTest("Warn", inProgress)
  const metadata = { annotations: { [supersedeAnnotation]: "1" } }
  expect(outcome(await tryOut(name, { defaultImage: app("v3") }, metadata))).toBe("accepted")
})

test("serialize is judged by its old value, so switching it off is an act of its own", async () => {
  const name = await forThisTest("Enforce", inProgress)
  const change = (spec: Json) => ask("PATCH", serviceImagePath(name), { spec })
  expect(outcome(await change({ serialize: "Allow", defaultImage: app("v3") }))).toBe("refused")
  expect(outcome(await change({ serialize: "Allow" }))).toBe("accepted")
  expect(outcome(await change({ serialize: "Enforce", defaultImage: app("v3") }))).toBe("accepted")
  expect(outcome(await change({ defaultImage: app("v4") }))).toBe("refused")
})

test("statuses are written and objects deleted as ever", async () => {
  const name = await forThisTest("Enforce", inProgress)
  const path = serviceImagePath(name)
  const status = { operation: { ...operation("InProgress"), id: "g2", images: { "": app("v9") } } }
  const answer = await ask("PATCH", `${path}/status`, { status })
  expect([answer.status, answer.warnings]).toEqual([200, ""])
  await floor().api.remove(path)
  await until("it to be gone", async () => (await floor().api.find(path)) === undefined)
})

test.each(["Enforce", "Warn"] as const)("serialize: %s can afford the largest spec", async serialize => {
  const longest = (tag: string) => `registry.example.com/${"a".repeat(489 - tag.length)}:${tag}`.padEnd(512, "z")
  // Names and images differ in their last characters only, so that every comparison goes to the end.
  const tiers = (tag: string) =>
    Array.from({ length: maxTiers }, (_, i) => {
      const name = "t".repeat(61) + String(i).padStart(2, "0")
      return { upgradeTier: i === 0 ? "" : name, image: longest(tag) }
    })
  const spec = { serialize, defaultImage: longest("v0"), tiers: tiers("v1") }
  const name = await forThisTest(serialize, inProgress, spec)
  const answer = await tryOut(name, { ...spec, tiers: tiers("v2") })
  expect(outcome(answer)).toBe(modes[serialize])
  expect(wordsOf(answer)).toContain('the image of tier "" and of others changes while operation g1 is in progress')
  expect(outcome(await tryOut(name, { ...spec, tiers: tiers("v1").reverse() }))).toBe("accepted")
  const last = [...tiers("v1").slice(0, -1), tiers("v2").at(-1)]
  expect(wordsOf(await tryOut(name, { ...spec, tiers: last }))).toContain(`tier "${last.at(-1)!.upgradeTier}" changes`)
})

const wordsOf = ({ body, warnings }: Answer): string => (body.kind === "Status" ? body.message : warnings)

/** What came of a change; anything but the policies' own answers is neither. */
function outcome({ status, body, warnings }: Answer): string {
  const isOurs = (words: string) => words.includes("ValidatingAdmissionPolicy 'aim-serviceimage-serialize-")
  if (status === 422 && isOurs(body.message)) return "refused"
  if (status !== 200) return `${status}: ${body.message}`
  if (warnings === "") return "accepted"
  return isOurs(warnings) ? "warned" : warnings
}

/** Asks for a change without making it. */
async function tryOut(name: string, spec: Json = {}, metadata: Json = {}): Promise<Answer> {
  const path = serviceImagePath(name)
  const old = await floor().api.get(path)
  const changed = { ...old, metadata: { ...old.metadata, ...metadata }, spec: { ...old.spec, ...spec } }
  return ask("PUT", `${path}?dryRun=All`, changed)
}

async function stored(spec: Json): Promise<string> {
  const name = `serialize-${randomBytes(4).toString("hex")}`
  const { apiVersion, kind } = ServiceImage
  await floor().api.create(serviceImagePath(""), { apiVersion, kind, metadata: { name }, spec: { ...calm, ...spec } })
  return name
}

const remove = async (names: string[]) => {
  for (const name of names) await floor().api.remove(serviceImagePath(name))
}

async function forThisTest(serialize: string, status?: Json, spec: Json = {}): Promise<string> {
  const name = await stored({ serialize, ...spec })
  onTestFinished(() => remove([name]))
  if (status) await floor().api.patch(`${serviceImagePath(name)}/status`, { status })
  return name
}
