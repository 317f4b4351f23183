import { expect, test } from "vitest"
import { crdOf } from "#api/crd.ts"
import { AlertProvider } from "#api/v1alpha1/alertprovider/index.ts"
import { MetricTemplate } from "#api/v1alpha1/metrictemplate/index.ts"
import { answer } from "#cluster-sim/faults/faults.ts"
import type { Json } from "#cluster-sim/index.ts"
import { createAlertProviderController } from "#controllers/alertprovider/controller.ts"
import { alertProviders } from "#controllers/canary/resources.ts"
import { createMetricTemplateController } from "#controllers/metrictemplate/controller.ts"
import { metricTemplates } from "#controllers/way-out.ts"
import { core } from "#runtime/resource.ts"
import { scenario, type World } from "#test/support/scenario.ts"
import { printed } from "#test/support/typed.ts"

// MetricTemplates and AlertProviders say themselves whether a Canary can use them.

const template = (name: string, spec: Json) => ({
  apiVersion: "autoimagemanager.io/v1alpha1",
  kind: "MetricTemplate",
  metadata: { name, namespace: "default" },
  spec: { provider: { type: "prometheus", address: "http://prometheus:9090" }, query: "up", ...spec },
})
const provider = {
  apiVersion: "autoimagemanager.io/v1alpha1",
  kind: "AlertProvider",
  metadata: { name: "on-call", namespace: "default" },
  spec: { type: "slack", secretRef: { name: "slack" } },
}
const secret = (data: Record<string, string>) => ({
  apiVersion: "v1",
  kind: "Secret",
  metadata: { name: "slack", namespace: "default" },
  data: Object.fromEntries(Object.entries(data).map(([key, text]) => [key, Buffer.from(text).toString("base64")])),
})
const secrets = core("secrets", "Secret")

async function story() {
  const world = await scenario()
  await world.apply(...[MetricTemplate, AlertProvider].map(kind => crdOf(kind) as Json))
  const rights = { areThere: true }
  const asked: string[] = []
  world.run([createMetricTemplateController({}), createAlertProviderController({})], {
    faults: [
      answer(({ path }) => !rights.areThere && path.includes("/secrets"), 403, { reason: "Forbidden" }),
      next => ({
        ...next,
        send(request) {
          if (!/[?&]watch=|\/leases|\/events/.test(request.path)) asked.push(`${request.method} ${request.path}`)
          return next.send(request)
        },
      }),
    ],
  })
  return { world, rights, asked }
}

async function conditions(world: World, resource: typeof metricTemplates, name: string): Promise<Record<string, Json>> {
  const { status } = await world.get(resource, name, "default")
  return Object.fromEntries((status?.conditions ?? []).map((each: Json) => [each.type, each]))
}

test("a template is judged at first sight, its status follows its spec, and nothing is written twice", async () => {
  const { world, asked } = await story()
  await world.apply(template("errors", { query: "sum(up" }))
  const ready = async () => (await conditions(world, metricTemplates, "errors")).Ready
  await world.until("judged", async () => (await ready()) !== undefined, "1m")
  expect(await conditions(world, metricTemplates, "errors")).toMatchObject({
    Ready: { status: "False", reason: "InvalidQuery", observedGeneration: 1 },
    Stalled: {
      status: "True",
      reason: "InvalidQuery",
      message: expect.stringContaining("line 1, column 7: ) is missing"),
    },
  })
  expect(await printed(world, "aim why metrictemplate/errors -n default")).toContain(") is missing")
  await world.apply(template("errors", { query: "sum(up)" }))
  await world.until("usable", async () => (await ready())?.status === "True", "1m")
  expect(await printed(world, "aim get metrictemplates -n default")).toMatch(/errors +Ready +Usable +prometheus/)
  expect(await printed(world, "aim wait metrictemplate/errors -n default")).toContain("Usable")
  expect((await world.get(metricTemplates, "errors", "default")).status.observedGeneration).toBe(2)
  expect(await conditions(world, metricTemplates, "errors")).toMatchObject({
    Stalled: { status: "False", reason: "NothingToDo", observedGeneration: 2 },
  })
  asked.length = 0
  await world.advance("24h")
  expect(asked).toEqual([])
})

test("a Secret is named, granted and complete, or the status says what is missing; its content is nowhere", async () => {
  const { world, rights, asked } = await story()
  const reason = async () => (await conditions(world, alertProviders, "on-call")).Ready?.reason
  const comes = (wanted: string) => world.until(wanted, async () => (await reason()) === wanted, "15m")
  await world.apply(provider)
  await comes("SecretMissing")
  rights.areThere = false
  await comes("Forbidden")
  expect((await conditions(world, alertProviders, "on-call")).Stalled.message).toBe(
    "aim may not read Secret slack: run aim grant default --secrets slack",
  )
  rights.areThere = true
  await world.apply(secret({ token: "hunter2" }))
  await world.until(
    "the key",
    async () => (await conditions(world, alertProviders, "on-call")).Ready.message.includes("no key address"),
    "15m",
  )
  const { metadata } = await world.get(secrets, "slack", "default")
  const data = secret({ token: "hunter2", address: "https://hooks.example.com/hunter2" }).data
  await world.client.patch(secrets, metadata, { type: "merge", body: { data } })
  await comes("Usable")
  const { status } = await world.get(alertProviders, "on-call", "default")
  expect(JSON.stringify(status)).not.toContain("hunter2")
  // One look an hour keeps it true.
  asked.length = 0
  await world.advance("10h")
  expect(asked.length).toBeLessThanOrEqual(10)
  expect(asked.every(each => each.startsWith("GET /api/v1/namespaces/default/secrets/slack"))).toBe(true)
})
