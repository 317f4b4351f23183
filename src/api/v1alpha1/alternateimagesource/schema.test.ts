import { expect, test } from "vitest"
import { cases } from "#test/support/manifests/alternateimagesource.ts"
import { largestAlternateStatus } from "#test/support/manifests/largest-alternate-status.ts"
import { silent, unbounded } from "#test/support/manifests/schema.ts"
import { validate } from "../../validate.ts"
import { AlternateImageSource, conditions, reasons, type TargetAvailable } from "./index.ts"

for (const [name, { manifest, old, refused, warned }] of Object.entries(cases))
  test(name, () => {
    const { errors, warnings, object } = validate(AlternateImageSource, manifest, { old })
    const said = (problems: typeof errors) => problems.map(({ path, message }) => `${path}: ${message}`)
    if (refused) {
      const { path, words } = refused
      expect(said(errors)).toHaveLength(1)
      expect(errors[0]).toEqual({ path, message: expect.stringContaining(words) })
    } else {
      expect(said(errors)).toEqual([])
      // The type we read objects as and the schema the server applies come from one declaration, by two ways.
      expect(AlternateImageSource.spec.parse(object?.spec)).toEqual(object?.spec)
    }
    expect(warnings.map(warning => warning.path)).toEqual(warned ? [warned.path] : [])
    if (warned) expect(warnings[0]?.message).toContain(warned.words)
  })

const smallest = cases["the smallest manifest"]!.manifest as object
const problemsOf = (status: unknown) => validate(AlternateImageSource, { ...smallest, status }).errors

test("without a policy it is careful", () => {
  const { object } = validate(AlternateImageSource, smallest)
  expect(object?.spec.policy).toEqual({
    apply: "Pod",
    onAuthError: "Ignore",
    requireSameDigest: "IfKnown",
    switchBack: "Never",
    confirmSeconds: 20,
    cooldownSeconds: 60,
    templateShare: "50%",
    overrideGitOps: false,
    disabledRepositories: [],
  })
})

test("the largest status that is legal stays below 256 kB", () => {
  const status = largestAlternateStatus()
  expect(problemsOf(status)).toEqual([])
  expect(Buffer.byteLength(JSON.stringify(status))).toBeLessThan(256_000)
})

test("one character or one switch more is refused", () => {
  const long = largestAlternateStatus()
  long.targetsAvailable[7]!.name += "z"
  expect(problemsOf(long)).toMatchObject([
    { path: "status.targetsAvailable", message: expect.stringContaining("120000") },
  ])
  const many = largestAlternateStatus()
  const [one] = many.targetsAvailable[7]!.switches!
  many.targetsAvailable[7]!.switches = [one!, { ...one!, oldImage: "", newImage: "" }]
  expect(problemsOf(many)).toMatchObject([{ path: "status.targetsAvailable", message: expect.stringContaining("200") }])
})

/** The original document's status after a switch. */
const original = {
  observedGeneration: 1,
  targetsAvailable: [
    {
      container: "basic-demo",
      currentRepository: "quay.io/fairwinds/docker-demo",
      name: "demo3-basic-demo",
      switches: [
        { newImage: "quay.io/fairwinds/docker-demo", oldImage: "ehazlett/docker-demo", time: "2020-11-30T19:20:18Z" },
      ],
      type: { group: "apps", kind: "deployment" },
      uid: "233ac88f-c125-4125-8788-e95f8531a181",
    },
  ],
}

test("the original document's status", () => expect(problemsOf(original)).toEqual([]))

test("every character of an image and of a workload's names fits the status", () => {
  const image = `Host-1.example.com:5000/a__b/c.d-e:V1_0.x-y@sha256:${"0123456789abcdef".repeat(4)}`
  const target: TargetAvailable = {
    container: "a-1",
    currentRepository: "[2001:DB8::1]:5000/a",
    name: "a.b-1",
    type: { group: "services.example.com", kind: "dicom" },
    uid: "233ac88f-c125-4125-8788-e95f8531a181",
    switches: [{ oldImage: image, newImage: image, time: "2026-01-31T12:00:00Z", reason: "SwitchedBack", pods: 3 }],
    incident: {
      since: "2026-01-31T12:00:00.123456Z",
      reason: "AllSourcesDown",
      image,
      failing: "[2001:DB8::1]:5000/a",
      bad: ["a__b/c.d-e"],
      attempts: 1,
      matchLabels: { "app.kubernetes.io/name": "A_1.b" },
    },
  }
  expect(problemsOf({ targetsAvailable: [target] })).toEqual([])
})

test("every word of the vocabulary fits the status", () => {
  const time = "2026-01-31T12:00:00Z"
  const common = { status: "True", observedGeneration: 1, lastTransitionTime: time, message: "" }
  const target = original.targetsAvailable[0]!
  for (const reason of Object.keys(reasons))
    for (const type of Object.keys(conditions)) {
      const switches = [{ oldImage: "a", newImage: "b", time, reason }]
      const incident = { since: time, reason, image: "a:1", failing: "a" }
      const targetsAvailable = [{ ...target, switches, incident }]
      expect(problemsOf({ conditions: [{ ...common, type, reason }], targetsAvailable })).toEqual([])
    }
})

test("conditions give only reasons that are explained", () => {
  for (const { reasons: given } of Object.values(conditions)) {
    expect(given.filter(reason => !Object.hasOwn(reasons, reason))).toEqual([])
    expect(new Set(given).size).toBe(given.length)
  }
})

test("every text, list, map and number has bounds", () => {
  expect(unbounded(AlternateImageSource.schema.properties!.spec!, "spec")).toEqual([])
  expect(unbounded(AlternateImageSource.schema.properties!.status!, "status")).toEqual([])
})

test("every field says what it is", () => {
  expect(silent(AlternateImageSource.schema.properties!.spec!, "spec")).toEqual([])
  expect(silent(AlternateImageSource.schema.properties!.status!, "status")).toEqual([])
})
