import { expect, test } from "vitest"
import { KubeError } from "#runtime/client/errors.ts"
import { serviceImage, testCluster, testWorld } from "../test-world.ts"
import { run } from "./complete.ts"

const offers = async (...words: string[]) => {
  const cluster = testCluster(serviceImage("web"), serviceImage("wolf", { spec: { tiers: [{ upgradeTier: "late" }] } }))
  return (await run({ arguments: words, options: {} }, testWorld(cluster).world)).text
}

test("rollouts and their tiers by what was typed so far", async () => {
  expect(await offers("serviceimages", "si/we")).toBe("si/web\n")
  expect(await offers("tiers", "", "si/web")).toBe("earlyAccess\n")
  expect(await offers("tiers", "l", "serviceimage/wolf")).toBe("late\n")
  expect(await offers("tiers", "", "si/olf")).toBe("")
  expect(await offers("tiers")).toBe("")
  expect(await offers("secrets")).toBe("")
})
test("trouble is silence", async () => {
  const cluster = testCluster()
  cluster.fail("list", new KubeError("Forbidden", "no", { status: 403 }))
  expect(await run({ arguments: ["tiers"], options: {} }, testWorld(cluster).world)).toEqual({ text: "", exitCode: 0 })
})

test("alternate image sources of the namespace that the line is about", async () => {
  const cluster = testCluster({ metadata: { name: "demo", namespace: "shop" } })
  const { world } = testWorld(cluster)
  const offered = async (what: string) => (await run({ arguments: [what], options: { namespace: "shop" } }, world)).text
  expect(await offered("alternateimagesources")).toBe("ais/demo\n")
  expect(await offered("ours")).toBe("si/demo\nais/demo\n") // this cluster is the same for every kind
})
