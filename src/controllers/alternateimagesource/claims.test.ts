import fc from "fast-check"
import { describe, expect, test } from "vitest"
import type { AlternateImageSource, Target } from "#api/v1alpha1/alternateimagesource/index.ts"
import { Claims, most, type Root } from "./claims.ts"
import { coverOf } from "./coverage.ts"

const repositories = ["a.example/app", "b.example/app", "c.example/app"]
type Sets = { equivalentRepositories: string[]; targets?: Target[] }[]

let generation = 0
const sourceOf = (name: string, sets: Sets, createdAt = "2026-01-01T00:00:00Z"): AlternateImageSource =>
  ({
    metadata: { name, namespace: "shop", uid: name, generation: ++generation, creationTimestamp: createdAt },
    spec: { imageSourceReplacements: sets },
  }) as unknown as AlternateImageSource

const rootOf = (name: string, images: readonly string[], more: Partial<Root> = {}): Root => {
  const type = { group: "apps", kind: "deployment" }
  const workload = { type, name, namespace: "shop", uid: `uid-${name}` } as Root["workload"]
  const containers = images.map((image, at) => ({ name: `c${at}`, image, isInit: false }))
  return { type, name, labels: {}, owner: undefined, workload, containers, ...more }
}

const named = (name: string, more: Partial<Target> = {}): Target => ({
  type: { group: "", kind: "Deployments" },
  name,
  ...more,
})

/** A namespace, and a plain count of it. */
function world(limits = most) {
  const sources = new Map<string, AlternateImageSource>()
  const roots = new Map<string, Root>()
  const claims = new Claims(limits)
  const moved = new Set<string>()
  const settling = () =>
    claims.settle(
      () => sources.values(),
      ref => roots.get(ref),
      moved,
    )
  const counted = () => {
    const age = ({ metadata }: AlternateImageSource) => `${metadata.creationTimestamp}${metadata.name}`
    const targetsOf = ({ spec }: AlternateImageSource) =>
      spec.imageSourceReplacements.reduce((sum, { targets = [] }) => sum + targets.length, 0)
    let targets = 0
    let isFull = false
    const active = [...sources.values()]
      .sort((a, b) => (age(a) < age(b) ? -1 : 1))
      .slice(0, limits.sources)
      .filter(source => {
        targets += targetsOf(source)
        isFull ||= targets > limits.targets
        return !isFull
      })
    return Object.fromEntries(
      [...sources].map(([key, source]) => {
        const roster: string[] = []
        let claimed = 0
        for (const root of roots.values())
          for (const container of root.containers) {
            if (!active.includes(source) || !coverOf(source.spec, root, container)) continue
            const first = active.find(other => coverOf(other.spec, root, container))
            if (first === source) roster.push(`${root.name}/${container.name}`)
            else claimed++
          }
        const isThere = ({ type, name }: Target) =>
          [...roots.values()].some(
            root =>
              coverOf(
                {
                  imageSourceReplacements: [{ equivalentRepositories: repositories, targets: [{ type, name }] }],
                } as never,
                root,
                { name: "any", image: repositories[0]!, isInit: false },
              ) !== undefined,
          )
        const wanted = source.spec.imageSourceReplacements.flatMap(({ targets = [] }) =>
          targets.filter(each => each.name),
        )
        const missing = active.includes(source)
          ? wanted.filter(each => !isThere(each)).map(each => `deployment/${each.name}`)
          : []
        return [key, { roster: roster.sort(), claimed, missing: [...new Set(missing)] }]
      }),
    )
  }
  const found = () =>
    Object.fromEntries(
      [...sources.keys()].map(key => {
        const { roster, claimed, missing } = claims.shareOf(key)
        return [
          key,
          { roster: roster.map(({ workload, container }) => `${workload.name}/${container.name}`), claimed, missing },
        ]
      }),
    )
  return {
    claims,
    moved,
    found,
    counted,
    settle() {
      for (const _ of settling());
    },
    /** Begins, and is interrupted. */
    begin(steps: number) {
      const work = settling()
      for (let step = 0; step < steps; step++) work.next()
      return work
    },
    source(name: string, sets: Sets | undefined, createdAt?: string) {
      const key = `shop/${name}`
      if (sets) sources.set(key, sourceOf(name, sets, createdAt))
      else sources.delete(key)
      claims.sourceChanged(key, sources.get(key))
    },
    root(name: string, root: Root | undefined) {
      if (root) roots.set(name, root)
      else roots.delete(name)
      claims.touch(name)
    },
  }
}

const name = fc.constantFrom("w1", "w2", "w3", "w4")
const image = fc.constantFrom(...repositories, "d.example/app", "not an image").map(each => `${each}:1`)
const target = fc.oneof(
  fc
    .record({ name, container: fc.option(fc.constantFrom("c0", "c1"), { nil: undefined }) })
    .map(({ name, container }) => named(name, container === undefined ? {} : { container })),
  fc
    .constantFrom("x", "y")
    .map((team): Target => ({ type: { group: "apps", kind: "deployment" }, labelSelector: { matchLabels: { team } } })),
)
const sets = fc.array(
  fc.record(
    {
      equivalentRepositories: fc.uniqueArray(fc.constantFrom(...repositories), { minLength: 1 }),
      targets: fc.array(target, { maxLength: 3 }),
    },
    { requiredKeys: ["equivalentRepositories"] },
  ),
  { minLength: 1, maxLength: 3 },
)
const change = fc.oneof(
  fc.record({
    do: fc.constant("source" as const),
    name: fc.constantFrom("s1", "s2", "s3", "s4", "s5"),
    sets: fc.option(sets, { nil: undefined }),
    day: fc.integer({ min: 1, max: 9 }),
  }),
  fc.record({
    do: fc.constant("root" as const),
    name,
    images: fc.option(fc.array(image, { maxLength: 3 }), { nil: undefined }),
    team: fc.constantFrom("x", "y", "z"),
  }),
  fc.record({ do: fc.constant("begin" as const), steps: fc.nat(20) }),
  fc.record({ do: fc.constant("settle" as const) }),
)

test("after any changes, in whatever pieces they were worked through, it equals a plain count", () => {
  fc.assert(
    fc.property(fc.array(change, { maxLength: 40, size: "max" }), changes => {
      const space = world({ sources: 3, targets: 6 })
      let before: Record<string, unknown> = {}
      let underWay: Iterator<unknown> | undefined
      const finish = () => {
        if (underWay) while (!underWay.next().done);
        underWay = undefined
        space.settle()
      }
      for (const each of changes) {
        if (each.do === "source") space.source(each.name, each.sets, `2026-01-0${each.day}T00:00:00Z`)
        if (each.do === "root")
          space.root(each.name, each.images && rootOf(each.name, each.images, { labels: { team: each.team } }))
        if (each.do === "begin") underWay ??= space.begin(each.steps)
        if (each.do !== "settle") continue
        finish()
        const now = space.found()
        for (const [key, share] of Object.entries(now))
          if (before[key] && JSON.stringify(share) !== JSON.stringify(before[key])) expect(space.moved).toContain(key)
        space.moved.clear()
        before = now
      }
      finish()
      expect(space.found()).toEqual(space.counted())
    }),
    { numRuns: 500 },
  )
})

describe("more sources than are acted on", () => {
  test("the oldest count, and what becomes of the others changes nothing until one of those is gone", () => {
    const space = world()
    space.root("w1", rootOf("w1", [`${repositories[0]}:1`]))
    const nameOf = (at: number) => `s${String(at).padStart(4, "0")}`
    for (let at = 0; at < 200; at++) space.source(nameOf(at), [{ equivalentRepositories: [repositories[0]!] }])
    space.settle()
    expect(space.claims.isActive("shop/s0049")).toBe(true)
    expect(space.claims.isActive("shop/s0050")).toBe(false)
    space.moved.clear()
    space.source("s0150", undefined)
    space.source("s9999", [])
    space.source("s0100", [])
    expect(space.claims.isSettled).toBe(true)

    space.source("s0007", undefined)
    space.settle()
    expect(space.claims.isActive("shop/s0050")).toBe(true)
    expect(space.moved).toContain("shop/s0050")
    expect(space.moved.has("shop/s0051")).toBe(false)
  })

  test("as far as their targets are no more than may be", () => {
    const space = world({ sources: 50, targets: 4 })
    const three = { equivalentRepositories: repositories, targets: [named("w1"), named("w2"), named("w3")] }
    for (const name of ["s1", "s2"]) space.source(name, [three])
    space.settle()
    expect(["s1", "s2"].map(name => space.claims.isActive(`shop/${name}`))).toEqual([true, false])
  })
})

test("missing targets are reported, each once; a selector misses none", () => {
  const space = world()
  const targets = [
    named("w1"),
    named("gone"),
    named("gone", { container: "app" }),
    { type: { group: "", kind: "job" }, labelSelector: { matchLabels: { no: "such" } } },
    { type: { group: "shop.example/v1", kind: "Redis" }, name: "berlin" },
  ]
  const owner = { group: "shop.example", kind: "redis", name: "berlin", uid: "1" }
  space.root("w1", rootOf("w1", [], { owner }))
  space.source("s1", [{ equivalentRepositories: repositories, targets }])
  space.settle()
  expect(space.claims.shareOf("shop/s1").missing).toEqual(["deployment/gone"])
})
