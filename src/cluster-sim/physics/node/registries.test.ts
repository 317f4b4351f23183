import { describe, expect, test } from "vitest"
import { type ImageReference, parseImage } from "./image-reference.ts"
import { createRegistries, type Fault } from "./registries.ts"

const at = { now: 0, platform: "linux/amd64" }
const reference = (image: string) => parseImage(image) as ImageReference

describe("what exists", () => {
  test("every well-formed image, the same each time it is asked for", () => {
    const registries = createRegistries()
    const first = registries.pull(reference("nginx:1.25"), at)
    expect(first).toMatchObject({ isFound: true, sizeBytes: 50_000_000, durationMs: 600 })
    expect(createRegistries().pull(reference("nginx:1.25"), at)).toEqual(first)
    expect(registries.pull(reference("nginx:1.26"), at)).not.toMatchObject({
      digest: "digest" in first && first.digest,
    })
  })

  test("only its own images in a registry with contents", () => {
    const registries = createRegistries([{ host: "ghcr.io", images: { "shop/web": { "1.0": { sizeBytes: 10 } } } }])
    expect(registries.pull(reference("ghcr.io/shop/web:1.0"), at)).toMatchObject({ isFound: true, sizeBytes: 10 })
    expect(registries.pull(reference("ghcr.io/shop/web:1.1"), at)).toMatchObject({ isFound: false })
    expect(registries.pull(reference("ghcr.io/shop/api:1.0"), at)).toMatchObject({ isFound: false })
    expect(registries.pull(reference("quay.io/shop/api:1.0"), at)).toMatchObject({ isFound: true })
  })

  test("a tag that moves is another image, and the old one can still be had by its digest", () => {
    const registries = createRegistries()
    const old = registries.push("ghcr.io/shop/web:1", { sizeBytes: 1 })
    const moved = registries.push("ghcr.io/shop/web:1", { sizeBytes: 2 })
    expect(moved).not.toBe(old)
    expect(registries.pull(reference("ghcr.io/shop/web:1"), at)).toMatchObject({ digest: moved, sizeBytes: 2 })
    expect(registries.pull(reference(`ghcr.io/shop/web@${old}`), at)).toMatchObject({ digest: old, sizeBytes: 1 })
  })

  test("what is removed is gone: a tag, or a repository with all its tags", () => {
    const registries = createRegistries()
    registries.remove("ghcr.io/shop/web:1")
    expect(registries.pull(reference("ghcr.io/shop/web:1"), at)).toMatchObject({ isFound: false })
    expect(registries.pull(reference("ghcr.io/shop/web:2"), at)).toMatchObject({ isFound: true })
    registries.remove("ghcr.io/shop/web")
    expect(registries.pull(reference("ghcr.io/shop/web:2"), at)).toMatchObject({ isFound: false })
    registries.push("ghcr.io/shop/web:3")
    expect(registries.pull(reference("ghcr.io/shop/web:3"), at)).toMatchObject({ isFound: true })
  })

  test("an image for other platforms is not found", () => {
    const registries = createRegistries()
    registries.push("ghcr.io/shop/web:1", { platforms: ["linux/arm64"] })
    const name = "ghcr.io/shop/web:1"
    expect(registries.pull(reference(name), at)).toMatchObject({
      message: `rpc error: code = NotFound desc = failed to pull and unpack image "${name}": no match for platform in manifest: not found`,
    })
    expect(registries.pull(reference(name), { ...at, platform: "linux/arm64" })).toMatchObject({ isFound: true })
  })
})

describe("faults", () => {
  const name = "docker.io/library/web:1"
  const begin = `failed to pull and unpack image "${name}": failed to resolve reference "${name}": `
  const asking = `${begin}failed to do request: Head "https://registry-1.docker.io/v2/library/web/manifests/1": `
  const cases: [Fault, string][] = [
    [{ kind: "status", status: 404 }, `rpc error: code = NotFound desc = ${begin}${name}: not found`],
    [
      { kind: "status", status: 429 },
      `${begin}pulling from host registry-1.docker.io failed with status code [manifests 1]: 429 Too Many Requests`,
    ],
    [
      { kind: "status", status: 401 },
      `${begin}failed to authorize: failed to fetch anonymous token: unexpected status: 401 Unauthorized`,
    ],
    [{ kind: "no-such-host" }, `${asking}dial tcp: lookup registry-1.docker.io: no such host`],
    [{ kind: "tls" }, `${asking}x509: certificate signed by unknown authority`],
  ]
  for (const [fault, message] of cases)
    test(JSON.stringify(fault), () => {
      const registries = createRegistries()
      registries.setFault("docker.io", fault)
      expect(registries.pull(reference("web:1"), at)).toMatchObject({ isFound: false, message })
    })

  test("the fault of the narrowest place counts, and a fault may end after a time or a number of pulls", () => {
    const registries = createRegistries([{ host: "ghcr.io", fault: { kind: "refused", until: 1000 } }])
    const found = (image: string, now: number) => registries.pull(reference(image), { ...at, now }).isFound
    expect([found("ghcr.io/a/b:1", 999), found("ghcr.io/a/b:1", 1000)]).toEqual([false, true])
    registries.setFault("ghcr.io/a/b", { kind: "timeout", times: 2 })
    expect(["c:1", "b:1", "b:1", "b:1"].map(image => found(`ghcr.io/a/${image}`, 2000))).toEqual([
      true,
      false,
      false,
      true,
    ])
  })

  test("a slow registry makes pulls take longer", () => {
    const registries = createRegistries()
    registries.setSpeed("ghcr.io", { bytesPerSecond: 1_000_000, latencyMs: 500 })
    expect(registries.pull(reference("ghcr.io/a/b:1"), at)).toMatchObject({ durationMs: 50_500, latencyMs: 500 })
  })
})
