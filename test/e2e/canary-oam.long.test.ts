import { spawn } from "node:child_process"
import { once } from "node:events"
import { readFileSync } from "node:fs"
import { join } from "node:path"
import { afterAll, beforeAll, expect, onTestFinished, test } from "vitest"
import { parse } from "yaml"
import { startTraffic } from "#test/support/clients.ts"
import { gatewayAddress, hostOf, pushShop, shopDeployment, useAddOns } from "#test/support/data-planes.ts"
import { floor, type Json, uniqueNamespace, until } from "#test/support/floor.ts"
import { expectAnswered, successRate, useCanaries } from "#test/support/real-canary.ts"
import { prepareOamRuntime } from "#tools/kube/binaries.ts"
import { repository } from "#tools/kube/folders.ts"
import { gateway } from "#tools/kube/gateway.ts"

// The real OAM runtime of the guide on a real cluster, through Contour and Envoy, judged by Prometheus. In the long form: the
// runtime loses a change of a component now and then (see docs/guides/oam.md), and is not ours to mend.

useAddOns("proxy", "gateway", "prometheus")
useCanaries()

let runtime = ""
beforeAll(async () => {
  runtime = await prepareOamRuntime(line => process.stderr.write(`oam: ${line}\n`))
  const { kubectlRun } = floor()
  await kubectlRun("apply", "-f", join(runtime, "crds"))
  await kubectlRun("wait", "--for=condition=established", "-f", join(runtime, "crds"), "--timeout=60s")
  await kubectlRun("apply", "-f", join(repository, "examples/oam/definitions.yaml"))
}, 1_800_000)
afterAll(async () => {
  await floor().kubectlRun("delete", "-f", join(runtime, "crds"), "--ignore-not-found")
})

/** Ends with the test, before the objects go that it would make again. */
function startRuntime(): void {
  const program = join(runtime, "bin/oam-kubernetes-runtime")
  const child = spawn(program, ["--metrics-addr=127.0.0.1:0", "--long-wait=1s"], {
    env: { ...process.env, KUBECONFIG: floor().kubeconfig },
    // What it says of a change that it lost is the only trace of it.
    stdio: ["ignore", "inherit", "inherit"],
  })
  const ended = once(child, "exit")
  onTestFinished(async () => {
    child.kill()
    await ended
  })
}

const example = (file: string): Json => parse(readFileSync(join(repository, "examples/oam", file), "utf8"))

test("a revision is promoted, a bad one goes back, and the next one is promoted, without a lost request", {
  timeout: 600_000,
}, async () => {
  const { api, kubectlRun } = floor()
  const namespace = await uniqueNamespace()
  const oam = `/apis/core.oam.dev/v1alpha2/namespaces/${namespace}`
  const kubectl = (...args: string[]) => kubectlRun("-n", namespace, ...args)
  const canary = () => api.get(`/apis/autoimagemanager.io/v1alpha1/namespaces/${namespace}/canaries/shop`)
  const sizes = async () => {
    const { items } = await api.get(`/apis/apps/v1/namespaces/${namespace}/deployments`)
    return Object.fromEntries(items.map(({ metadata, spec }: Json) => [metadata.name, spec.replicas]))
  }
  const workloadOf = (image: string) => {
    const { apiVersion, kind, spec } = shopDeployment("shop", image)
    const { replicas: _, ...fields } = spec
    return { apiVersion, kind, spec: fields }
  }
  const revised = (name: string) =>
    until(`${name} is the latest revision`, async () => {
      const { status } = await api.get(`${oam}/components/shop`)
      return status?.latestRevision?.name === name
    })
  /** The author changes the component, and names its revision in the application. */
  const revise = async (number: number, image: string) => {
    await api.patch(`${oam}/components/shop`, { spec: { workload: workloadOf(image) } })
    await revised(`shop-v${number}`)
    const { spec } = await api.get(`${oam}/applicationconfigurations/shop`)
    const components = [{ ...spec.components[0], revisionName: `shop-v${number}` }]
    await api.patch(`${oam}/applicationconfigurations/shop`, { spec: { components } })
  }
  const ended = (runs: number) =>
    until(`run ${runs} has ended`, async () => {
      const { status } = await canary()
      return status?.history?.length === runs && !status.run && (status.history[0] as Json)
    })

  const images = { v1: await pushShop("shop:v1"), v2: await pushShop("shop:v2"), v3: await pushShop("shop:v3") }
  const bad = await pushShop("shop:bad", { ERROR_RATE: "0.5" })
  startRuntime()
  const component = example("component.yaml")
  await api.create(`${oam}/components`, {
    ...component,
    metadata: { name: "shop" },
    spec: { workload: workloadOf(images.v1) },
  })
  await revised("shop-v1")
  const application = example("application.yaml")
  const { trait } = application.spec.components[0].traits[0]
  Object.assign(trait.spec, {
    service: { name: "shop", port: 80, targetPort: "http", hosts: [hostOf(namespace)], gatewayRefs: [gateway] },
    analysis: { interval: "10s", threshold: 1, stepWeights: [50], metrics: [successRate] },
  })
  await api.create(`${oam}/applicationconfigurations`, { ...application, metadata: { name: "shop" } })
  await until("the first revision answers", async () => {
    const found = await canary().catch(() => undefined)
    return found?.status?.phase === "Succeeded"
  })
  await kubectl("scale", "deploy/shop-v1", "--replicas=2")
  await kubectl("rollout", "status", "deploy/shop-v1", "--timeout=60s")
  const through = { addresses: [gatewayAddress], headers: { host: hostOf(namespace) } }
  await until("requests are answered", async () => {
    const { failures } = await startTraffic({ ...through, perSecond: 50, requestsMost: 10 }).result
    return failures.length === 0
  })
  const clients = [0, 4].map(connections => startTraffic({ ...through, perSecond: 20, connections }))

  await revise(2, images.v2)
  expect(await ended(1)).toMatchObject({ result: "Promoted", target: { workload: "shop-v2" } })
  expect(await sizes()).toEqual({ "shop-v1": 0, "shop-v2": 2 })

  await revise(3, bad)
  expect(await ended(2)).toMatchObject({ result: "RolledBack", reason: "AnalysisFailed" })
  await until("its pods are gone", async () => (await sizes())["shop-v3"] === 0)
  expect(await sizes()).toEqual({ "shop-v1": 0, "shop-v2": 2, "shop-v3": 0 })

  await revise(4, images.v3)
  expect(await ended(3)).toMatchObject({ result: "Promoted", source: { workload: "shop-v2" } })
  expect(await sizes()).toEqual({ "shop-v1": 0, "shop-v2": 0, "shop-v3": 0, "shop-v4": 2 })
  expectAnswered(await Promise.all(clients.map(client => client.stop())), "bad")

  // What the runtime applies again and again changes nothing: the Canary is the same object in the same version.
  const { metadata } = await until("the Canary rests", async () => {
    const before = await canary()
    await new Promise(resolve => setTimeout(resolve, 5000))
    const now = await canary()
    return now.metadata.resourceVersion === before.metadata.resourceVersion && now
  })
  expect(metadata.finalizers).toEqual(["autoimagemanager.io/canary"])
})
