import { expect, test } from "vitest"
import { parseImageReference } from "#core/image/reference.ts"
import { createRegistryClient, type Resolution, type ResolveOptions } from "#registry/index.ts"
import { systemClock } from "#runtime/clock.ts"
import { systemRandom } from "#runtime/random.ts"
import { run } from "#tools/kube/command.ts"
import { floor } from "../support/floor.ts"

const resolve = (image: string, allow: string[], options: ResolveOptions = {}): Promise<Resolution> => {
  const parsed = parseImageReference(image)
  if (!parsed.ok) throw new Error(parsed.error)
  return createRegistryClient({ clock: systemClock, random: systemRandom, allow }).resolve(parsed.reference, options)
}

test("a tag is what skopeo says it is, and follows when it moves", async () => {
  const { registry, pushImage } = floor()
  const first = await pushImage("resolved:v1")
  const raw = await run("skopeo", ["inspect", "--raw", "--tls-verify=false", `docker://${first.reference}`])
  const mediaType = "application/vnd.oci.image.manifest.v1+json"
  const expected = { ok: true, digest: first.digest, mediaType, size: Buffer.byteLength(raw) }
  expect(await resolve(first.reference, [registry])).toEqual(expected)
  expect(await resolve(first.reference, [registry], { platforms: true })).toEqual(expected) // hashed by us

  const second = await pushImage("resolved:v1", { version: "moved" })
  expect(second.digest).not.toBe(first.digest)
  expect(await resolve(second.reference, [registry])).toMatchObject({ digest: second.digest })
  expect(await resolve(`${first.reference}@${first.digest}`, [registry])).toMatchObject({ digest: first.digest })
})

test("what is not there, and what may not be asked", async () => {
  const { registry } = floor()
  expect(await resolve(`${registry}/nobody:v1`, [registry])).toMatchObject({ ok: false, class: "NotFound" })
  expect(await resolve(`${registry}/nobody:v1`, [])).toMatchObject({ ok: false, class: "ForbiddenAddress" })
})
