import { expect, test } from "vitest"
import type { KubeObject } from "#runtime/resource.ts"
import { sightsOf } from "./facts.ts"
import { podStandings } from "./pods.ts"
import { nodeImage, noteOf, pod, revision, templateOf, v1, v2, workload } from "./test-workloads.ts"

/** A workload with one pod, one revision, and nothing in common with the others but the namespace. */
function fleet(size: number) {
  let looks = 0
  const objects = Array.from({ length: size }, (_, index) => {
    const named = <T extends KubeObject>(object: T): T =>
      JSON.parse(JSON.stringify(object).replaceAll("uid-web", `uid-${index}-web`))
    const watched = (object: KubeObject) =>
      new Proxy(object, {
        get(target, name) {
          looks++
          return Reflect.get(target, name)
        },
      })
    const image = index % 2 ? v1 : v2
    return {
      workload: named(workload({ image, ...(image === v2 && { note: noteOf("Updating") }) })),
      revision: watched(named(revision("Deployment", 1, templateOf(v1)))),
      pod: watched(named(pod("web-0"))),
      nodeImage: watched(nodeImage(`node-${index}`)),
    }
  })
  const all = sightsOf(
    objects.map(each => each.workload),
    {
      revisions: objects.map(each => each.revision),
      pods: objects.map(each => each.pod),
      nodeImages: objects.map(each => each.nodeImage),
      ...{ budgets: [], now: 0 },
    },
  )
  const found = all.map(sight => podStandings(sight).map(({ state }) => state))
  return { looks, found }
}

test("among a hundred times as many workloads, each pod, revision and node is looked at as often", () => {
  const [few, many] = [fleet(10), fleet(1000)]
  expect(few.found.slice(0, 2)).toEqual([["Stale"], ["Updated"]])
  expect(many.looks / 1000).toBe(few.looks / 10)
})
