import fc from "fast-check"
import { describe, expect, test } from "vitest"
import { assign, GroupedPlaces, type Place, sourceId } from "./places.ts"

const place = (node: string, namespace = "a", ...secrets: string[]): Place => ({ node, namespace, secrets })

/** The places of objects in groups, as nodes with the ids of their sources. */
function shown(places: GroupedPlaces, group: string): Record<string, string[]> {
  return Object.fromEntries([...places.of(group)].map(([node, sources]) => [node, [...sources.keys()].sort()]))
}

describe("places in groups", () => {
  const change = fc.record({
    key: fc.constantFrom("x", "y", "z"),
    do: fc.constantFrom("places", "group", "delete"),
    group: fc.constantFrom("early", "late", undefined),
    places: fc.array(
      fc.record({
        node: fc.constantFrom("n1", "n2"),
        namespace: fc.constantFrom("a", "b"),
        secrets: fc.constantFrom<string[]>([], ["s"]),
      }),
      { maxLength: 3 },
    ),
  })

  test("after any changes they equal a plain count", () => {
    fc.assert(
      fc.property(fc.array(change, { maxLength: 30 }), changes => {
        const places = new GroupedPlaces()
        const objects = new Map<string, { group: string | undefined; places: readonly Place[] }>()
        for (const each of changes) {
          const before = objects.get(each.key)
          if (each.do === "delete") {
            places.delete(each.key)
            objects.delete(each.key)
          } else {
            const given = each.do === "places" ? each.places : undefined
            places.set(each.key, each.group, given)
            objects.set(each.key, { group: each.group, places: given ?? before?.places ?? [] })
          }
        }
        for (const group of ["early", "late"]) {
          const all = [...objects.values()].filter(object => object.group === group).flatMap(object => object.places)
          const nodes = [...new Set(all.map(({ node }) => node))]
          const idsOn = (node: string) => [...new Set(all.filter(each => each.node === node).map(sourceId))].sort()
          expect(shown(places, group)).toEqual(Object.fromEntries(nodes.map(node => [node, idsOn(node)])))
        }
      }),
    )
  })
})

describe("each node is given to one source", () => {
  const given = (places: Place[], isGiven: (id: string, node: string) => boolean = () => false) => {
    const grouped = new GroupedPlaces()
    for (const [index, each] of places.entries()) grouped.set(String(index), "tier", [each])
    return Object.fromEntries([...assign(grouped.of("tier"), isGiven)].map(([id, { nodes }]) => [id, nodes]))
  }

  test("few sources, the one that reaches most first", () => {
    const places = [place("n1", "a"), place("n1", "b"), place("n2", "b"), place("n3", "b"), place("n3", "c")]
    expect(given(places)).toEqual({ b: ["n1", "n2", "n3"] })
  })
  test("a node joins a source that is needed anyway", () => {
    const places = [place("n1", "a"), place("n2", "a"), place("n2", "b"), place("n3", "b"), place("n4", "b")]
    expect(given(places, (id, node) => id === "a" && node === "n1")).toEqual({ a: ["n1", "n2"], b: ["n3", "n4"] })
    expect(given(places)).toEqual({ b: ["n2", "n3", "n4"], a: ["n1"] })
  })
  test("a source without Secrets before one with them: its pod must be able to pull without", () => {
    expect(given([place("n1", "a", "s"), place("n2", "a", "s"), place("n1", "b")])).toEqual({
      b: ["n1"],
      "a s": ["n2"],
    })
  })
  test("a node stays where it was given, as long as such a pod is there", () => {
    const places = [place("n1", "a"), place("n1", "b"), place("n2", "b")]
    expect(given(places, (id, node) => id === "a" && node === "n1")).toEqual({ a: ["n1"], b: ["n2"] })
    expect(given(places, id => id === "gone")).toEqual({ b: ["n1", "n2"] })
  })
  test("every node, once, to a source that is there", () => {
    const name = (prefix: string) => fc.integer({ min: 0, max: 6 }).map(number => `${prefix}${number}`)
    const anyPlace = fc.record({ node: name("n"), namespace: name("s"), secrets: fc.constantFrom<string[]>([], ["x"]) })
    fc.assert(
      fc.property(fc.array(anyPlace), fc.func(fc.boolean()), (places, isGiven) => {
        const assigned = Object.entries(given(places, isGiven)).flatMap(([id, nodes]) =>
          nodes.map(node => ({ id, node })),
        )
        expect(assigned.map(({ node }) => node).sort()).toEqual([...new Set(places.map(({ node }) => node))].sort())
        for (const { id, node } of assigned)
          expect(places.some(each => each.node === node && sourceId(each) === id)).toBe(true)
      }),
    )
  })
})
