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
})
