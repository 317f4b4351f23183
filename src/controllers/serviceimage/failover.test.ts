import { expect, test } from "vitest"
import type { Trace } from "#core/pods/trace.ts"
import type { Wiring } from "#runtime/controller.ts"
import { Failover } from "./failover.ts"

type Event = { before?: object; after?: object }

/** With one cache of sources, whose events the test sends. */
function failover() {
  const changed: string[] = []
  let tell: (event: Event) => void = () => {}
  const cache = {
    subscribe(listener: typeof tell) {
      tell = listener
    },
    keysBy: () => [],
    close() {},
  }
  const under = new Failover({ watch: () => cache } as unknown as Wiring, uid => changed.push(uid))
  under.open()
  const source = { namespace: "shop", sets: [], given: [] }
  return { under, changed, change: () => tell({ before: source, after: { ...source, given: ["a:1"] } }) }
}

const trace = (reason?: "ImagePullFailed" | "Unhealthy"): Trace => ({
  pods: 1,
  troubles: reason ? [{ reason, message: "", isTentative: false, images: ["a:1"], pods: 1 }] : [],
  lost: [],
  crashes: [],
  steadyAt: 0,
})

test("a source that changes concerns the objects of its namespace whose pods cannot pull, and no others", () => {
  const { under, changed, change } = failover()
  under.soften(trace("ImagePullFailed"), { uid: "pulls", namespace: "shop" })
  under.soften(trace("Unhealthy"), { uid: "sick", namespace: "shop" })
  under.soften(trace(), { uid: "well", namespace: "shop" })
  under.soften(trace("ImagePullFailed"), { uid: "elsewhere", namespace: "other" })
  change()
  expect(changed).toEqual(["pulls"])
})

test("an object that pulls again, or is gone, is no longer concerned", () => {
  const { under, changed, change } = failover()
  for (const uid of ["a", "b"]) under.soften(trace("ImagePullFailed"), { uid, namespace: "shop" })
  under.soften(trace(), { uid: "a", namespace: "shop" })
  under.forget({ uid: "b", namespace: "shop" })
  change()
  expect(changed).toEqual([])
})
