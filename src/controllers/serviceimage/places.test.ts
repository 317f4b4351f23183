import { expect, test } from "vitest"
import { Fleet } from "#core/fleet/fleet.ts"
import type { Place } from "#core/pods/places.ts"
import { FleetPlaces } from "./places.ts"
import { dicom, start, v2 } from "./test-snapshot.ts"

const rules = (...tiers: string[]) => ({
  by: "serviceimage/web",
  uid: "u",
  operation: "g1",
  startedAt: start,
  isRollback: false,
  tiers: tiers.map(name => ({ name, image: v2, deadlineMs: 1, settleMs: 0, cohortEnds: [1] })),
})

function world() {
  const fleet = new Fleet(rules("early", ""), start)
  const places = new Map<string, Place[]>()
  const pods = { isReliable: true, placesOf: ({ uid }: { uid: string }) => places.get(uid) ?? [] }
  const put = (uid: string, fields: Parameters<typeof dicom>[0] = {}) =>
    fleet.set(`n/${uid}`, dicom({ uid, ...fields }))
  const run = (uid: string, ...nodes: string[]) =>
    places.set(
      uid,
      nodes.map(node => ({ node, namespace: "n", secrets: [] })),
    )
  return { fleet, pods, put, run, of: new FleetPlaces(fleet, pods) }
}
const nodesOf = (places: FleetPlaces, tier: string) => (places.isKnown ? [...places.of(tier).keys()].sort() : "unknown")

test("what was there before it was asked for the first time counts, and nothing before the pods are known", () => {
  const { of, put, run, pods } = world()
  pods.isReliable = false
  put("e1", { tier: "early" })
  run("e1", "n1")
  of.traced("n/e1")
  expect(nodesOf(of, "early")).toBe("unknown")
  pods.isReliable = true
  expect(nodesOf(of, "early")).toEqual(["n1"])
})

test("it follows pods, labels and objects that keep their image themselves or are gone", () => {
  const { of, put, run, fleet } = world()
  put("e1", { tier: "early" })
  run("e1", "n1")
  expect(nodesOf(of, "early")).toEqual(["n1"])
  run("e1", "n1", "n2")
  of.traced("n/e1")
  expect(nodesOf(of, "early")).toEqual(["n1", "n2"])
  put("e1", { resourceVersion: "2" })
  of.changed("n/e1")
  expect([nodesOf(of, "early"), nodesOf(of, "")]).toEqual([[], ["n1", "n2"]])
  put("e1", { resourceVersion: "3", isUnmanaged: true })
  of.changed("n/e1")
  expect(nodesOf(of, "")).toEqual([])
  put("e1", { resourceVersion: "4" })
  of.changed("n/e1")
  fleet.delete("n/e1")
  of.traced("n/e1")
  expect(nodesOf(of, "")).toEqual([])
})

test("other tiers are counted anew", () => {
  const { of, put, run, fleet } = world()
  put("e1", { tier: "early" })
  run("e1", "n1")
  expect(nodesOf(of, "early")).toEqual(["n1"])
  fleet.renew(rules(""), start)
  of.renew()
  expect([nodesOf(of, "early"), nodesOf(of, "")]).toEqual([[], ["n1"]])
})
