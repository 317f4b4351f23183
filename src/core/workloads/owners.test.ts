import fc from "fast-check"
import { describe, expect, test } from "vitest"
import { levelsMost, ownerWalk, topOwner } from "./owners.ts"

/** The owner of each object, by number: objects may own themselves or each other, and owners may be missing. */
const graphs = fc
  .integer({ min: 1, max: 24 })
  .chain(size => fc.array(fc.option(fc.nat(size + 2), { nil: undefined }), { minLength: size, maxLength: size }))

type Graph = readonly (number | undefined)[]
const ownerIn = (graph: Graph) => (object: number) => {
  const owner = graph[object]
  return owner !== undefined && owner < graph.length ? owner : undefined
}
const ownedIn = (graph: Graph) => (object: number) => [...graph.keys()].filter(each => graph[each] === object)

describe("owner references of any shape", () => {
  test("a walk up or down ends, visits nothing twice, and only what the references lead to", () => {
    fc.assert(
      fc.property(graphs, fc.boolean(), fc.nat(), (graph, isUp, seed) => {
        const start = seed % graph.length
        const next = isUp
          ? (object: number) => [ownerIn(graph)(object)].filter(each => each !== undefined)
          : ownedIn(graph)
        const visited = [...ownerWalk([start], { next, idOf: String })]
        expect(new Set(visited).size).toBe(visited.length)
        expect(visited[0]).toBe(start)
        for (const each of visited.slice(1)) expect(visited.some(other => next(other).includes(each))).toBe(true)
        if (isUp) expect(visited.length).toBeLessThanOrEqual(levelsMost)
      }),
    )
  })

  test("the top is an object that nothing owns, and the top of itself; without one an object stands for itself", () => {
    fc.assert(
      fc.property(graphs, graph => {
        const top = (object: number) => topOwner(object, ownerIn(graph), String)
        for (const object of graph.keys()) {
          expect(top(top(object))).toBe(top(object))
          if (top(object) !== object) expect(ownerIn(graph)(top(object))).toBeUndefined()
        }
      }),
    )
  })

  const tops: Record<string, { graph: Graph; top: number }> = {
    "nothing above it": { graph: [undefined], top: 0 },
    "an owner that is missing": { graph: [7], top: 0 },
    "a chain": { graph: [1, 2, undefined], top: 2 },
    "an object that owns itself": { graph: [0], top: 0 },
    "two that own each other": { graph: [1, 0], top: 0 },
    "a way into a circle": { graph: [1, 2, 1], top: 0 },
    "a chain as long as is looked at": { graph: [1, 2, 3, 4, 5, 6, 7, undefined], top: 7 },
    "a longer chain": { graph: [1, 2, 3, 4, 5, 6, 7, 8, undefined], top: 0 },
  }
  for (const [name, { graph, top }] of Object.entries(tops))
    test(name, () => expect(topOwner(0, ownerIn(graph), String)).toBe(top))
})
