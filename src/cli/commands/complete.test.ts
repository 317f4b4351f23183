import { describe, expect, test } from "vitest"
import { KubeError } from "#runtime/client/errors.ts"
import { runProgram } from "#test/support/program.ts"
import { operation, serviceImage, testCluster, testWorld } from "../test-world.ts"
import { commands } from "../tree.ts"
import { run } from "./complete.ts"
import { run as completeLine, wanted } from "./complete-line.ts"

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
  expect(await offered("ours")).toBe(
    "si/demo\nais/demo\ncrr/demo\nnimg/demo\nipj/demo\nilpj/demo\ncn/demo\nmt/demo\nap/demo\n",
  ) // this cluster is the same for every kind
})

test("pods and workloads of the namespace that the line is about", async () => {
  const { world } = testWorld(testCluster({ metadata: { name: "web", namespace: "shop" } }))
  const offered = async (prefix: string) =>
    (await run({ arguments: ["workloads", prefix], options: { namespace: "shop" } }, world)).text
  expect(await offered("sts/")).toBe("sts/web\n")
  expect(await offered("p")).toBe("pod/\n")
  expect(await offered("job/")).toBe("")
})

describe("what a line can go on with, for kubectl", () => {
  const end = async (...words: string[]) => {
    const web = serviceImage("web", { status: { operation: operation("g4", "Complete") } })
    const { world } = testWorld(testCluster(web), { commands })
    return (await completeLine({ arguments: words, options: {} }, world)).text.trimEnd().split("\n")
  }
  test("commands, options and their values", async () => {
    expect(await end("sta")).toEqual(["status", ":4"])
    expect(await end("")).toEqual([...commands.filter(({ group }) => group).map(({ name }) => name), "help", ":4"])
    expect(await end("help", "w")).toEqual(["wait", "why", ":4"])
    expect(await end("wait", "--ti")).toEqual(["--timeout", ":4"])
    expect(await end("get", "-o", "")).toEqual(["wide", "name", "json", "yaml", ":4"])
    expect(await end("demo", "r")).toEqual(["registry-outage", "restart", ":4"])
    expect(await end("plan", "-f", "")).toEqual([":0"])
  })
  test("names, tiers and operations, from the cluster that the line is about", async () => {
    expect(await end("pause", "--context", "prod", "si/")).toEqual(["si/web", ":4"])
    expect(await end("approve", "si/web", "")).toEqual(["earlyAccess", ":4"])
    expect(await end("set-image", "si/web", "early")).toEqual(["earlyAccess=", ":6"])
    expect(await end("rollback", "si/web", "--operation", "")).toEqual(["g4", ":4"])
    expect(await end("why", "d")).toEqual(["deployment/", "daemonset/", "dicom/", ":6"])
    expect(await end("restart", "d")).toEqual(["deployment/", "daemonset/", ":6"])
    expect(await end("why", "deploy/")).toEqual(["deploy/web", ":4"]) // this cluster is the same for every kind
    expect(wanted(["grant", "-n", "shop", "--context", "prod", ""], commands)).toMatchObject({
      completes: "namespaces",
      connection: { namespace: "shop", context: "prod" },
    })
  })
  test("kubectl_complete-aim is that", async () => {
    const { code, stdout } = await runProgram("bin/kubectl_complete-aim", ["get", "-o", "j"])
    expect([code, stdout]).toEqual([0, "json\n:4\n"])
  })
})
