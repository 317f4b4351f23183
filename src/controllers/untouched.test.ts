import { expect, test } from "vitest"
import type { Client } from "#runtime/client/client.ts"
import { KubeError } from "#runtime/client/errors.ts"
import type { Resource } from "#runtime/resource.ts"
import { isUntouched } from "./untouched.ts"

type Page = { items: object[]; continue?: string } | KubeError

/** A cluster that answers lists of our kinds with these. */
const having = (pages: Record<string, Page>) => {
  const list = async ({ kind }: Resource) => {
    const page = pages[kind] ?? { items: [] }
    if (page instanceof KubeError) throw page
    return { items: page.items, metadata: { continue: page.continue ?? "" } }
  }
  return isUntouched({ list } as unknown as Client)
}

test("a cluster without objects of ours was never acted in, nor one without the kinds", async () => {
  expect(await having({})).toBe(true)
  const missing = new KubeError("NotFound", "the server could not find the requested resource")
  expect(await having({ ServiceImage: missing, AlternateImageSource: missing })).toBe(true)
})

test("objects without a status do not show that a controller acted", async () => {
  const fresh = { metadata: { name: "fresh" }, spec: {} }
  expect(await having({ ServiceImage: { items: [fresh] }, AlternateImageSource: { items: [fresh] } })).toBe(true)
})

test("a status of either kind does, and so do more objects than are read", async () => {
  const seen = { metadata: { name: "seen" }, spec: {}, status: { observedGeneration: 1 } }
  expect(await having({ ServiceImage: { items: [seen] } })).toBe(false)
  expect(await having({ AlternateImageSource: { items: [seen] } })).toBe(false)
  expect(await having({ ServiceImage: { items: [], continue: "more" } })).toBe(false)
})

test("where lists are forbidden, nothing is concluded", async () => {
  await expect(having({ ServiceImage: new KubeError("Forbidden", "no") })).rejects.toThrow("no")
})
