import { expect, test } from "vitest"
import { retryAnnotation, ServiceImage, type ServiceImageStatus } from "#api/v1alpha1/serviceimage/index.ts"
import { currentOperation } from "#core/operation.ts"
import type { RegistryClient } from "#registry/index.ts"
import { type Pinning, pin } from "./pins.ts"

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

test("an operation begins with what its tags mean at that moment, and keeps it whatever is pushed later", async () => {
  const fresh = serviceImage("AtStart")
  const { pins } = await pin(fresh, registryWith(both).registry, undefined, 0)
  const operation = currentOperation(fresh, 0, pins)
  expect(operation.images).toEqual({ "": `${v2}@${digest("a")}`, early: `${v3}@${digest("b")}` })

  const begun = serviceImage("AtStart", { operation })
  const { registry, asked } = registryWith({ [v2]: digest("c"), [v3]: digest("c") })
  expect(await pin(begun, registry, { pins }, 0)).toEqual({ pins: new Map() })
  expect(asked).toEqual([])
  expect(currentOperation(begun, 1)).toEqual(operation)
})

test("nobody is asked who was not told to, and a digest needs no answer", async () => {
  const { registry, asked } = registryWith(both)
  expect((await pin(serviceImage("Never"), registry, undefined, 0)).pins.size).toBe(0)
  const pinned = serviceImage("AtStart")
  pinned.spec.tiers = []
  pinned.spec.defaultImage = `${v2}@${digest("a")}`
  expect((await pin(pinned, registry, undefined, 0)).pins.size).toBe(0)
  expect(asked).toEqual([])
})

test("an operation that was taken back asks again when it is retried", async () => {
  const operation = { ...currentOperation(serviceImage("AtStart"), 0), id: "g0", phase: "RolledBack" as const }
  const { registry, asked } = registryWith(both)
  await pin(serviceImage("AtStart", { operation }), registry, undefined, 0)
  expect(asked).toHaveLength(2)
})

test("a tag that is not there is told, and asked for again no sooner than the registry wants; what was found stays", async () => {
  const first = registryWith({ [v2]: digest("a") })
  const before = await pin(serviceImage("AtStart"), first.registry, undefined, 0)
  expect(before.problem?.reason).toBe("ImageNotResolved")
  expect(before.problem?.message).toContain(v3)
  expect(before.problem?.retryAt).toBe(90_000)

  const second = registryWith(both)
  expect(await pin(serviceImage("AtStart"), second.registry, before, 89_999)).toBe(before)
  expect(second.asked).toEqual([])
  const after: Pinning = await pin(serviceImage("AtStart"), second.registry, before, 90_000)
  expect([second.asked, after.problem]).toEqual([[v3], undefined])
})

test("without a registry to ask, the spec is refused rather than stamped by tag", async () => {
  expect((await pin(serviceImage("AtStart"), undefined, undefined, 0)).problem?.reason).toBe("ImageNotResolved")
})
