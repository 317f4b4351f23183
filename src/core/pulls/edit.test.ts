import { expect, test } from "vitest"
import { ImagePullJob } from "#api/v1alpha1/imagepulljob/index.ts"
import type { ImageTag, NodeImageSpec, NodeImageStatus } from "#api/v1alpha1/nodeimage/index.ts"
import { type Addition, edited } from "./edit.ts"

const configs = { a: { labels: { of: "a" } }, b: { labels: { of: "b" } }, plain: undefined }
type Name = keyof typeof configs

const addition = (uid: Name, namespace: string, tag = "1"): Addition => ({
  image: { name: "shop/web", tag },
  owner: { apiVersion: ImagePullJob.apiVersion, kind: "ImagePullJob", namespace, name: uid, uid },
  policy: ImagePullJob.spec.parse({ image: `shop/web:${tag}` }),
})

/** The NodeImage after jobs came to it, where only the wanted ones are left. */
const after = (images: NodeImageSpec["images"], additions: Addition[], wanted: Name[]) =>
  edited(
    { spec: { images } },
    {
      additions,
      isWanted: uid => wanted.includes(uid as Name),
      expired: [],
      sandboxConfigOf: uid => configs[uid as Name],
      now: 0,
    },
  ).spec.images

const configIn = (images: NodeImageSpec["images"]) => images["shop/web"]?.sandboxConfig

test("the sandboxConfig of a repository is that of the first job that has one", () => {
  const one = after({}, [addition("plain", "shop"), addition("b", "shop")], ["plain", "b"])
  expect(configIn(one)).toEqual(configs.b)
  expect(configIn(after(one, [addition("a", "shop", "2")], ["plain", "b", "a"]))).toEqual(configs.b)
})

test("the sandboxConfig of a job ends with it, and reaches no pull of another namespace", () => {
  const one = after({}, [addition("a", "shop")], ["a"])
  expect(configIn(one)).toEqual(configs.a)
  const both = after(one, [addition("plain", "other", "2")], ["a", "plain"])
  expect(configIn(both)).toBeUndefined()
  expect(configIn(after(both, [], ["a"]))).toEqual(configs.a)
  expect(configIn(after(one, [addition("plain", "other", "2")], ["plain"]))).toBeUndefined()
})

test("a repository with an entry that was made by hand keeps what was written there", () => {
  const [tag] = after({}, [addition("a", "shop")], ["a"])["shop/web"]!.tags
  const byHand = { tags: [{ ...tag!, tag: "hand", ownerReferences: [] }] }
  const written = { "shop/web": { ...byHand, sandboxConfig: configs.b } }
  expect(configIn(after(written, [addition("a", "shop")], ["a"]))).toEqual(configs.b)
  expect(configIn(after({ "shop/web": byHand }, [addition("a", "shop")], ["a"]))).toBeUndefined()
})

test("an entry of no job goes when its time is over, unless it was asked for once more or by a job", () => {
  const entry = (tag: string, version: number, owners: Name[] = []): ImageTag => ({
    ...after({}, [addition("a", "shop", tag)], ["a"])["shop/web"]!.tags[0]!,
    version,
    ownerReferences: owners.map(uid => addition(uid, "shop").owner),
  })
  const told = (tag: string, version: number) => ({ tag, version, phase: "Succeeded" as const, attempts: 1 })
  const images = {
    "shop/web": { tags: [entry("old", 3), entry("again", 4), entry("joined", 3, ["a"]), entry("kept", 3)] },
  }
  const tags = [told("old", 3), told("again", 4), told("joined", 3), told("kept", 3)]
  const status = { imageStatuses: { "shop/web": { tags } } } as unknown as NodeImageStatus
  const expired = ["old", "again", "joined"].map(tag => ({ name: "shop/web", tag, version: 3 }))
  const edit = { additions: [], isWanted: () => true, expired, sandboxConfigOf: () => undefined, now: 0 }
  const left = edited({ spec: { images }, status }, edit).spec.images["shop/web"]!.tags
  expect(left.map(({ tag }) => tag)).toEqual(["again", "joined", "kept"])
})
