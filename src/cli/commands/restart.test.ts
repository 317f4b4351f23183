import { describe, expect, test } from "vitest"
import type { Json } from "#cluster-sim/index.ts"
import { core } from "#runtime/resource.ts"
import { restartFleet } from "#test/support/restart-fleet.ts"
import { Failure, UsageError } from "../command.ts"
import { testCluster, testWorld } from "../test-world.ts"
import { run } from "./restart.ts"

const messageOf = (outcome: object) => ("error" in outcome ? (outcome.error as Error).message : "")

describe("a workload", () => {
  test("pod by pod: every container is restarted once, and one pod at a time is down", async () => {
    const fleet = await restartFleet()
    const before = await fleet.pods()
    const typed = await fleet.type("aim restart deploy/web -n shop")
    expect(await typed.outcome()).toEqual({
      text: "restarted: all containers of 3 pods of deploy/web\n",
      exitCode: 0,
    })
    expect(await fleet.restarts()).toEqual([
      [1, 1],
      [1, 1],
      [1, 1],
    ])
    expect((await fleet.pods()).map(({ metadata }) => metadata.uid)).toEqual(before.map(({ metadata }) => metadata.uid))
    expect(fleet.mostDown()).toBe(1)
    expect(typed.said[0]).toMatch(/^restarting all containers of 3 pods of deploy\/web, 1 at a time, as restart \w{5}$/)
    expect(typed.said.at(-1)).toMatch(/^\[3\/3\] pod web-\S+ Succeeded: 2 containers recreated$/)
  })

  test("one container of each, two pods at a time", async () => {
    const fleet = await restartFleet({ replicas: 4 })
    const typed = await fleet.type("aim restart deployment/web -n shop -c sidecar --max-unavailable 2")
    expect(await typed.outcome()).toMatchObject({ text: "restarted: sidecar of 4 pods of deployment/web\n" })
    expect(await fleet.restarts()).toEqual(Array.from({ length: 4 }, () => [0, 1]))
    expect(fleet.mostDown()).toBe(2)
  })

  test("a PodDisruptionBudget allows fewer", async () => {
    const fleet = await restartFleet()
    await fleet.apply(budget({ minAvailable: 2 }))
    await fleet.advance("1s")
    const typed = await fleet.type("aim restart deploy/web -n shop --max-unavailable 3")
    expect(await typed.outcome()).toMatchObject({ exitCode: 0 })
    expect(fleet.mostDown()).toBe(1)
  })

  test("a PodDisruptionBudget that allows none is waited for, and --timeout ends that", async () => {
    const fleet = await restartFleet()
    await fleet.apply(budget({ minAvailable: 3 }))
    await fleet.advance("1s")
    const typed = await fleet.type("aim restart deploy/web -n shop --timeout 10m")
    await fleet.advance("1m")
    expect(typed.said[1]).toBe("[0/3] waits: PodDisruptionBudget web allows no disruption now")
    expect(messageOf(await typed.outcome())).toMatch(
      /^deploy\/web: not restarted within 10m\nIt waits: PodDisruptionBudget web allows no disruption now\nRestarted: 0 pods.\nLeft: 3 pods \(.*\).\nTo go on: aim restart deploy\/web -n shop$/,
    )
    expect(await fleet.requests()).toEqual([])
  })

  test("interrupted, it says what is left; continued, the rest is restarted and nothing twice", async () => {
    const fleet = await restartFleet()
    const typed = await fleet.type("aim restart deploy/web -n shop -c app")
    await fleet.until("the second request", async () => (await fleet.requests()).length === 2)
    typed.interrupt()
    expect(await typed.outcome()).toHaveProperty("error.message", "interrupted")
    const words = typed.written.join("").trimEnd()
    expect(words).toMatch(
      /^Restarted: 1 pod.\nUnder way, and finished by the node without this command: web-\S+.\nLeft: 1 pod \(web-\S+\).\nTo go on: aim restart deploy\/web -c app --continue \w{5} -n shop$/,
    )
    await fleet.advance("1m")
    expect((await fleet.requests()).length).toBe(2)
    const again = await fleet.type(/To go on: (.*)$/.exec(words)![1]!)
    expect(await again.outcome()).toMatchObject({ text: "restarted: app of 3 pods of deploy/web\n" })
    expect(await fleet.restarts()).toEqual([
      [1, 0],
      [1, 0],
      [1, 0],
    ])
  })

  test("a container that fails ends it with exit code 1, and further pods are left alone", async () => {
    const fleet = await restartFleet({ hasAgents: false })
    const typed = await fleet.type("aim restart deploy/web -n shop")
    const outcome = await typed.outcome()
    expect(outcome).toHaveProperty("error", expect.any(Failure))
    expect(messageOf(outcome)).toMatch(
      /^pod web-\S+ AgentMissing: no agent has answered on node node-\d within 60 s; .*\nRestarted: 0 pods.\nLeft: 2 pods/,
    )
    expect((await fleet.requests()).length).toBe(1)
    expect(await fleet.restarts()).toEqual(Array.from({ length: 3 }, () => [0, 0]))
    const again = await fleet.type(/To go on: (.*)$/.exec(messageOf(outcome))![1]!)
    await fleet.advance("10s")
    expect((await fleet.requests()).length).toBe(2) // the failed pod is tried again, by a request of its own
    again.interrupt()
    await again.outcome()
  })

  test("a request that is deleted meanwhile is a failure, and is not made again", async () => {
    const fleet = await restartFleet({ hasAgents: false })
    const typed = await fleet.type("aim restart deploy/web -n shop")
    await fleet.until("the first request", async () => (await fleet.requests()).length === 1)
    await fleet.advance("1s")
    const [request] = await fleet.requests()
    const resource = (await fleet.client.discover(request!.apiVersion, request!.kind))!
    await fleet.client.delete(resource, request!.metadata)
    expect(messageOf(await typed.outcome())).toMatch(/^pod web-\S+ Deleted: the request was deleted/)
    expect(await fleet.requests()).toEqual([])
  })

  test("a refused request ends it with the server's words, and it says what is left", async () => {
    const fleet = await restartFleet()
    await fleet.apply({
      apiVersion: "v1",
      kind: "ResourceQuota",
      metadata: { name: "few", namespace: "shop" },
      spec: { hard: { "count/containerrecreaterequests.autoimagemanager.io": "1" } },
    })
    await fleet.advance("10s")
    const typed = await fleet.type("aim restart deploy/web -n shop")
    expect(messageOf(await typed.outcome())).toContain("exceeded quota")
    expect(typed.written.join("")).toMatch(
      /^Restarted: 1 pod.\nLeft: 2 pods \(.*\).\nTo go on: aim restart .* --continue /,
    )
  })

  test("--dry-run lists the pods and writes nothing", async () => {
    const fleet = await restartFleet()
    const names = (await fleet.pods()).map(({ metadata }) => metadata.name)
    const outcome = await (await fleet.type("aim restart deploy/web -n shop --dry-run")).outcome()
    expect(outcome).toMatchObject({
      text: expect.stringMatching(/^would restart all containers of 3 pods of deploy\/web, 1 at a time: /),
    })
    for (const name of names) expect(outcome).toMatchObject({ text: expect.stringContaining(name) })
    expect(await fleet.requests()).toEqual([])
  })
})

describe("a pod", () => {
  test("is restarted alone", async () => {
    const fleet = await restartFleet()
    const [first] = await fleet.pods()
    const typed = await fleet.type(`aim restart pod/${first!.metadata.name} -n shop -c app`)
    expect(await typed.outcome()).toMatchObject({ text: `restarted: app of pod/${first!.metadata.name}\n` })
    expect(await fleet.restarts()).toEqual([
      [1, 0],
      [0, 0],
      [0, 0],
    ])
  })

  test("that lacks the container is refused with the names that it has", async () => {
    const fleet = await restartFleet({ replicas: 1, hasAgents: false })
    const [{ metadata }] = (await fleet.pods()) as [Json]
    const typed = await fleet.type(`aim restart pod/${metadata.name} -n shop -c nothing`)
    expect(messageOf(await typed.outcome())).toBe(`pod ${metadata.name} has no container nothing: write app or sidecar`)
    expect(await fleet.requests()).toEqual([])
  })

  test("that does not exist is refused with the closest name", async () => {
    const fleet = await restartFleet({ replicas: 1, hasAgents: false })
    const [{ metadata }] = (await fleet.pods()) as [Json]
    const typed = await fleet.type(`aim restart pod/${metadata.name}x -n shop`)
    expect(messageOf(await typed.outcome())).toBe(
      `there is no Pod ${metadata.name}x in namespace shop; did you mean pod/${metadata.name}?`,
    )
  })

  test("that is deleted meanwhile is a failure; one of a workload is not, because its successor is new", async () => {
    for (const isAlone of [true, false]) {
      const fleet = await restartFleet({ replicas: 1, hasAgents: false })
      const [pod] = (await fleet.pods()) as [Json]
      const typed = await fleet.type(`aim restart ${isAlone ? `pod/${pod.metadata.name}` : "deploy/web"} -n shop`)
      await fleet.until("the request", async () => (await fleet.requests()).length === 1)
      await fleet.client.delete(core("pods", "Pod"), pod.metadata)
      const outcome = await typed.outcome()
      if (isAlone) expect(messageOf(outcome)).toContain(`pod ${pod.metadata.name} PodGone: `)
      else expect(outcome).toEqual({ text: "deploy/web has no pod that needs a restart\n", exitCode: 0 })
    }
  })
})

test("a restart that left no requests cannot be continued", async () => {
  const fleet = await restartFleet({ replicas: 1, hasAgents: false })
  const typed = await fleet.type("aim restart deploy/web -n shop --continue x7k2q")
  expect(messageOf(await typed.outcome())).toMatch(/^--continue: namespace shop has no request of restart x7k2q /)
  expect(await fleet.requests()).toEqual([])
})

const budget = (spec: object) => ({
  apiVersion: "policy/v1",
  kind: "PodDisruptionBudget",
  metadata: { name: "web", namespace: "shop" },
  spec: { selector: { matchLabels: { app: "web" } }, ...spec },
})

describe("refused before anything is written", () => {
  const wrong: Record<string, { words: [string, object?]; message: string }> = {
    "a name without a kind": { words: ["web"], message: "write KIND/NAME, such as deployment/web" },
    "a kind whose pods are not started again": { words: ["job/web"], message: "job cannot be restarted: write pod/, " },
    "no pod at a time": { words: ["deploy/web", { maxUnavailable: "0" }], message: "write 1 or more" },
    "a share of them": { words: ["deploy/web", { maxUnavailable: "25%" }], message: "25% is not a number of pods" },
    "a restart that is no word": { words: ["deploy/web", { continue: "a b" }], message: "names no restart" },
  }
  for (const [name, { words, message }] of Object.entries(wrong))
    test(name, async () => {
      const { world } = testWorld(testCluster())
      const input = { arguments: [words[0]], options: { namespace: "shop", maxUnavailable: "1", ...words[1] } }
      await expect(run(input, world)).rejects.toThrow(UsageError)
      await expect(run(input, world)).rejects.toThrow(message)
    })
})
