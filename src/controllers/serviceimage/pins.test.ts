import { setImmediate as nextTurn } from "node:timers/promises"
import { expect, test } from "vitest"
import { retryAnnotation, ServiceImage, type ServiceImageStatus } from "#api/v1alpha1/serviceimage/index.ts"
import { currentOperation } from "#core/fleet/operation.ts"
import type { RegistryClient, Resolution } from "#registry/index.ts"
import { virtualClock } from "#runtime/clock.ts"
import { type Pinning, pin } from "./pins.ts"

type Registry = Pick<RegistryClient, "resolve"> | undefined

const digest = (hex: string) => `sha256:${hex.repeat(64)}`
const [v2, v3] = ["shop/web:2", "shop/web:3"]

const serviceImage = (resolveDigest: "Never" | "AtStart", status?: Partial<ServiceImageStatus>): ServiceImage => ({
  apiVersion: ServiceImage.apiVersion,
  kind: "ServiceImage",
  metadata: { name: "web", generation: 1, annotations: { [retryAnnotation]: "g0" } },
  spec: ServiceImage.spec.parse({
    target: { apiVersion: "example.com/v1", kind: "Web" },
    defaultImage: v2,
    tiers: [{ upgradeTier: "early", image: v3 }],
    resolveDigest,
  }),
  ...(status && { status: ServiceImage.status.parse(status) }),
})

/** A registry that knows these tags, and what it was asked. */
function registryWith(tags: Record<string, string>) {
  const asked: string[] = []
  const registry: Pick<RegistryClient, "resolve"> = {
    async resolve({ path, tag }) {
      asked.push(`${path}:${tag}`)
      const found = tags[`${path}:${tag}`]
      return found
        ? { ok: true, digest: found, mediaType: "" }
        : { ok: false, class: "NotFound", message: "no such tag", retryAfterMs: 90_000 }
    },
  }
  return { registry, asked }
}

const both = { [v2]: digest("a"), [v3]: digest("b") }

/** Asks until everything is answered, as the controller does: it looks again after each answer. */
async function pinAll(object: ServiceImage, registry: Registry, now = 0, before?: Pinning): Promise<Pinning> {
  const clock = virtualClock(now)
  let wake = () => {}
  const look = () => pin(object, before, { registry, clock, onAnswer: () => wake() })
  for (before = look(); before.asking.size > 0; before = look())
    await new Promise<void>(resolve => {
      wake = resolve
    })
  return before
}

test("an operation begins with what its tags mean at that moment, and keeps it whatever is pushed later", async () => {
  const fresh = serviceImage("AtStart")
  const pinning = await pinAll(fresh, registryWith(both).registry)
  const operation = currentOperation(fresh, 0, pinning.pins)
  expect(operation.images).toEqual({ "": `${v2}@${digest("a")}`, early: `${v3}@${digest("b")}` })

  const begun = serviceImage("AtStart", { operation })
  const { registry, asked } = registryWith({ [v2]: digest("c"), [v3]: digest("c") })
  expect((await pinAll(begun, registry, 0, pinning)).pins).toEqual(new Map())
  expect(asked).toEqual([])
  expect(currentOperation(begun, 1)).toEqual(operation)
})

test("no registry is asked without resolveDigest, and a digest needs no answer", async () => {
  const { registry, asked } = registryWith(both)
  expect((await pinAll(serviceImage("Never"), registry)).pins.size).toBe(0)
  const pinned = serviceImage("AtStart")
  pinned.spec.tiers = []
  pinned.spec.defaultImage = `${v2}@${digest("a")}`
  expect((await pinAll(pinned, registry)).pins.size).toBe(0)
  expect(asked).toEqual([])
})

test("an operation that was taken back asks again when it is retried", async () => {
  const operation = { ...currentOperation(serviceImage("AtStart"), 0), id: "g0", phase: "RolledBack" as const }
  const { registry, asked } = registryWith(both)
  await pinAll(serviceImage("AtStart", { operation }), registry)
  expect(asked).toHaveLength(2)
})

test("a missing tag is reported, and asked for again no sooner than the registry wants; what was found stays", async () => {
  const first = registryWith({ [v2]: digest("a") })
  const before = await pinAll(serviceImage("AtStart"), first.registry)
  expect(before.problem?.reason).toBe("ImageNotResolved")
  expect(before.problem?.message).toContain(v3)
  expect(before.problem?.retryAt).toBe(90_000)

  const second = registryWith(both)
  expect((await pinAll(serviceImage("AtStart"), second.registry, 89_999, before)).problem?.message).toContain(v3)
  expect(second.asked).toEqual([])
  const after = await pinAll(serviceImage("AtStart"), second.registry, 90_000, before)
  expect([second.asked, after.problem]).toEqual([[v3], undefined])
})

test("another image is asked for at once, whatever kept the last one from being resolved", async () => {
  const { registry } = registryWith({ [v2]: digest("a") })
  const before = await pinAll(serviceImage("AtStart"), registry)
  const mended = serviceImage("AtStart")
  mended.spec.tiers = []
  expect(await pinAll(mended, registry, 1, before)).toMatchObject({ problem: undefined, isOpen: false })
})

test("while a registry is silent nothing begins, and a problem stays reported while it is asked about again", async () => {
  const clock = virtualClock(0)
  const answers: ((found: Resolution) => void)[] = []
  const registry: Registry = { resolve: () => new Promise(resolve => answers.push(resolve)) }
  let looks = 0
  const look = (before?: Pinning) => pin(serviceImage("AtStart"), before, { registry, clock, onAnswer: () => looks++ })
  const first = look()
  expect([first.isOpen, first.problem, answers.length]).toEqual([true, undefined, 2]) // both at the same time
  expect(look(first).isOpen).toBe(true)
  expect(answers).toHaveLength(2)
  for (const answer of answers) answer({ ok: false, class: "Timeout", message: "too long" })
  await nextTurn()
  expect(looks).toBe(2)
  expect(look(first)).toMatchObject({ isOpen: false, problem: { retryAt: 30_000 } })
  await clock.advance(30_000)
  expect(look(first)).toMatchObject({ isOpen: false, problem: { retryAt: 60_000 } })
  expect(answers).toHaveLength(4)
})

test("without a registry to ask, the spec is refused rather than stamped by tag", async () => {
  expect((await pinAll(serviceImage("AtStart"), undefined)).problem?.reason).toBe("ImageNotResolved")
})
