import { describe, expect, test } from "vitest"
import { expectHandOversHarmless } from "#test/support/canary-stall.ts"
import { useAddOns } from "#test/support/data-planes.ts"
import { floor, until } from "#test/support/floor.ts"
import { byRoute, expectAnswered, openShop, successRate, useCanaries } from "#test/support/real-canary.ts"

// A Canary that is deleted in each phase, and programs of the cluster that end during a run: no request is lost.

useAddOns("proxy", "gateway", "prometheus")
useCanaries()

const metrics = [successRate]
const byWeights = (weights: number[]) => byRoute({ stepWeights: weights, metrics })

describe.concurrent("a Canary is deleted", () => {
  const phases: Record<string, string> = {
    "while it waits to begin": "Waiting",
    "while requests are divided": "Progressing",
    "while it waits for its promotion": "WaitingPromotion",
    "while it is promoted": "Promoting",
    "while it is handed over": "Finalising",
  }
  for (const [name, phase] of Object.entries(phases))
    test(`${name}: no request is lost`, async ({ onTestFinished }) => {
      const shop = await openShop(onTestFinished, { isRouted: true })
      const gates = { Waiting: ["Rollout"], WaitingPromotion: ["Promotion"] }[phase] ?? []
      const delay = phase === "Finalising" ? { scaleDownDelaySeconds: 5 } : {}
      const steps = phase === "Promoting" ? { stepWeightPromotion: 40 } : {}
      const spec = byRoute({ stepWeights: [20], metrics, ...steps }, { requireApproval: gates, ...delay })
      await shop.create({ ...spec, revertOnDeletion: phase !== "Progressing" })
      await shop.until("it is adopted", ({ status }) => status?.phase === "Initialized")
      const clients = shop.clients()
      await clients.more()
      await shop.setVersion("v2")
      const isDivided = phase === "Progressing" ? 20 : 0
      await shop.until(phase, ({ status }) => status.phase === phase && status.run?.weight >= isDivided)
      await shop.remove()
      await until("it is gone", async () => !(await shop.canary().catch(() => undefined)))
      await clients.more()
      await until("two pods are left", async () => (await shop.pods()).length === 2)
      expect(await shop.kubectl("rollout", "status", "deploy/shop", "--timeout=60s")).toContain("successfully")
      const { metadata, spec: left } = await shop.workload()
      expect(JSON.stringify({ ...metadata, managedFields: [] })).not.toContain("autoimagemanager.io")
      const pods = await shop.pods()
      expect(new Set(pods.map(pod => pod.spec.containers[0].image))).toEqual(
        new Set([left.template.spec.containers[0].image]),
      )
      await clients.more()
      expectAnswered(await clients.stop())
    })
})

describe("a program of the cluster ends during a run", () => {
  test("Prometheus: the weight is held until it is back", async ({ onTestFinished }) => {
    const shop = await openShop(onTestFinished, { isRouted: true })
    await shop.create(byWeights([20]))
    await shop.until("it is adopted", ({ status }) => status?.phase === "Initialized")
    const clients = shop.clients()
    await clients.more()
    await shop.setVersion("v2")
    await shop.until("v2 has requests", ({ status }) => status.run?.weight === 20)
    await floor().stopProgram("prometheus", "SIGKILL")
    const { status } = await shop.until("it holds", ({ status }) => status.run?.reason === "MetricError")
    expect(status).toMatchObject({ phase: "Progressing", canaryWeight: 20, failedChecks: 0 })
    await floor().startProgram("prometheus")
    expect(await shop.untilEnded(0)).toMatchObject({ result: "Promoted" })
    await clients.more()
    expectAnswered(await clients.stop())
  })

  test("Contour: Envoy goes on, and the next weight waits for it", async ({ onTestFinished }) => {
    const shop = await openShop(onTestFinished, { isRouted: true })
    await shop.create(byWeights([20, 50]))
    await shop.until("it is adopted", ({ status }) => status?.phase === "Initialized")
    const clients = shop.clients()
    await clients.more()
    await shop.setVersion("v2")
    await shop.until("v2 has requests", ({ status }) => status.run?.weight === 20)
    await floor().stopProgram("contour", "SIGKILL")
    await shop.until("it waits for the route", ({ status }) => status.run?.reason === "NotAccepted")
    await clients.more()
    await floor().startProgram("contour")
    expect(await shop.untilEnded(0)).toMatchObject({ result: "Promoted" })
    await clients.more()
    expectAnswered(await clients.stop())
  })
})

test(
  "kube-controller-manager is stopped across the hand-over of 200 Canaries: no pod is replaced",
  () => expectHandOversHarmless(200),
  900_000,
)
