import { expect, test } from "vitest"
import type { CanarySpecInput } from "#api/v1alpha1/canary/index.ts"
import type { Rules } from "#egress/index.ts"
import { internet, serve } from "#egress/test-servers.ts"
import { silentLogger } from "#runtime/silent-logger.ts"
import { createHooks } from "../hooks.ts"
import { createMeasuring } from "../measure.ts"
import { canaryWith, type JudgingWorld, judgingWorld, roundOf, untilThere } from "../test-judging.ts"
import { createAlerts } from "./alerts.ts"
import { callFor } from "./questions.ts"

// What a tenant of namespace `shop` can write, and what must not come of it: a connection to a place that is not public
// and not the tenant's own, a Secret of another namespace, or text of another namespace in the tenant's status.

const pod = (namespace: string, address: string, isHostNetwork = false) => ({
  address,
  port: 9090,
  pod: { namespace, addresses: [address], isHostNetwork },
})
const services: Record<string, ReturnType<Rules["serviceAt"]>> = {
  "shop/prometheus": { type: "ClusterIP", hasSelector: true, endpoints: [pod("shop", "10.1.0.7")] },
  "shop/outside": { type: "ExternalName", hasSelector: false, endpoints: [] },
  "shop/handmade": { type: "ClusterIP", hasSelector: false, endpoints: [pod("shop", "10.1.0.7")] },
  "shop/forged": { type: "ClusterIP", hasSelector: true, endpoints: [pod("bank", "10.1.0.9")] },
  "shop/claimed": {
    type: "ClusterIP",
    hasSelector: true,
    endpoints: [
      { address: "10.1.0.9", port: 80, pod: { namespace: "shop", addresses: ["10.1.0.7"], isHostNetwork: false } },
    ],
  },
  "shop/node": { type: "ClusterIP", hasSelector: true, endpoints: [pod("shop", "10.0.0.1", true)] },
  "bank/prometheus": { type: "ClusterIP", hasSelector: true, endpoints: [pod("bank", "10.1.0.9")] },
}

/** The names that a tenant may own, with addresses of its choice. */
const names = {
  "public.test": ["1.1.1.1"],
  "inside.test": ["10.96.0.1"],
  "mixed.test": ["1.1.1.1", "169.254.169.254"],
  "six.test": ["::ffff:10.96.0.1"],
  "redirect.test": ["1.1.1.2"],
}

/** A world with one server behind every address, whose answer leads on and holds a secret of its own. */
async function tenantWorld(more: JudgingWorld = {}) {
  const { port, seen } = await serve((_, response) =>
    response.writeHead(302, { location: "http://169.254.169.254/latest" }).end("internal s3cret"),
  )
  const net = internet(port, names)
  // Each look-up of this name gives another address: what was checked must be what is connected to.
  let looks = 0
  const lookup = async (name: string) =>
    name === "turning.test" ? [looks++ > 0 ? "10.96.0.1" : "1.1.1.1"] : net.options.lookup(name)
  const template = (address: string) => ({
    provider: { type: "prometheus", address, secretRef: { name: "login" } },
    query: 'x{ns="{{ namespace }}", a="{{ variables.a }}"}',
  })
  const world = judgingWorld({
    serviceAt: ({ namespace, name }) => services[`${namespace}/${name}`],
    egress: { ...net.options, lookup },
    allow: ["bank=vault.internal.test:8200"],
    templates: {
      "bank/errors": template("http://prometheus:9090"),
      "monitoring/errors": template("http://public.test"),
      "shop/own": template("http://public.test"),
    },
    providers: {
      "bank/chat": { type: "slack", secretRef: { name: "chat" } },
      "shop/chat": { type: "slack", secretRef: { name: "bankchat" } },
    },
    secrets: {
      "bank/login": { token: "bank-token" },
      "bank/chat": { address: "http://public.test/bank-hook" },
      "monitoring/login": { token: "monitoring-token" },
    },
    shared: ["monitoring"],
    ...more,
  })
  return { ...world, dialled: net.dialled, seen }
}

type Attempt = {
  analysis?: Partial<CanarySpecInput["analysis"]>
  spec?: Partial<CanarySpecInput>
  /** Words of the refusal. */
  says: RegExp
  /** Connections that are allowed all the same. */
  reaches?: readonly string[]
}

const metricsServer = (url: string, says: RegExp, reaches?: readonly string[]): Attempt => ({
  analysis: { metrics: [{ name: "x", query: "up" }] },
  spec: { metricsServer: url },
  says,
  ...(reaches && { reaches }),
})
const hook = (url: string, says: RegExp, more: object = {}, reaches?: readonly string[]): Attempt => ({
  analysis: { webhooks: [{ name: "x", url, ...more }] },
  says,
  ...(reaches && { reaches }),
})
const template = (
  ref: { name: string; namespace?: string },
  says: RegExp,
  templateVariables: Record<string, string> = { a: "b" },
): Attempt => ({
  analysis: { metrics: [{ name: "x", templateRef: ref, templateVariables }] },
  says,
})
const alert = (ref: { name: string; namespace?: string }, says: RegExp): Attempt => ({
  analysis: { alerts: [{ name: "x", providerRef: ref }] },
  says,
})

const attempts: Record<string, Attempt> = {
  "a metadata server": metricsServer("http://169.254.169.254/latest", /address/),
  "a metadata server in another notation": metricsServer("http://2852039166/latest", /address/),
  "a metadata server in octal": hook("http://0251.0376.0251.0376/", /address/),
  "a metadata server of another cloud": hook("http://100.100.100.200/", /address/),
  "the program itself": metricsServer("http://localhost:8080/metrics", /address/),
  "the program itself by IPv6": hook("http://[::1]:8080/", /address/),
  "the API server": hook("https://kubernetes.default.svc/api/v1/secrets", /another namespace/),
  "the API server by address": hook("https://10.96.0.1/", /private address/),
  "an IPv4 address within IPv6": hook("http://[::ffff:10.96.0.1]/", /address/),
  "another tenant's Service": metricsServer("http://prometheus.bank.svc:9090", /another namespace than shop/),
  "another tenant's Service by its whole name": metricsServer(
    "http://prometheus.bank.svc.cluster.local:9090",
    /another namespace/,
  ),
  "another tenant's pod by name": hook("http://10-1-0-9.bank.pod.cluster.local/", /not a Service/),
  "a public name of an inner address": hook("http://inside.test/", /private address/),
  "a public name of an inner address by IPv6": hook("http://six.test/", /address/),
  "a name with a good and a bad address": hook("http://mixed.test/", /address/),
  "a host that was allowed to another tenant": hook("http://vault.internal.test:8200/", /vault\.internal\.test/),
  "a Service that leads anywhere": hook("http://outside/", /ExternalName/),
  "a Service without a selector": hook("http://handmade/", /no selector/),
  "an endpoint of another tenant's pod": hook("http://forged/", /not a pod of its namespace/),
  "an endpoint that claims another address": hook("http://claimed/", /not a pod of its namespace/),
  "a pod with its node's network": hook("http://node/", /network of its node/),
  "a certificate that is not checked": hook("https://public.test/", /checking its certificate/, { disableTLS: true }),
  "a password in the address": hook("http://admin:pw@public.test/", /user or a password/),
  "a redirect of a hook": hook("http://redirect.test/", /^answered 302: internal s3cret$/, {}, ["1.1.1.2"]),
  "a redirect of a metric server": metricsServer("http://redirect.test/", /^the metric service answered 302$/, [
    "1.1.1.2",
  ]),
  "a template that is not shared": template(
    { name: "errors", namespace: "bank" },
    /bank does not share its MetricTemplate errors/,
  ),
  "a template that does not exist there": template(
    { name: "nothing", namespace: "bank" },
    /bank does not share its MetricTemplate nothing/,
  ),
  "a variable that ends the query of another": template(
    { name: "errors", namespace: "monitoring" },
    /plain values only/,
    { a: '"} or secret_metric{ns="bank' },
  ),
  "a Secret of another namespace by a template": template({ name: "own" }, /Secret login does not exist in shop/),
  "an alert provider that is not shared": alert(
    { name: "chat", namespace: "bank" },
    /bank does not share its AlertProvider chat/,
  ),
  "a Secret of another namespace by an alert": alert({ name: "chat" }, /Secret bankchat does not exist in shop/),
  "a Secret of another namespace by a hook": hook("http://public.test/", /Secret login does not exist in shop/, {
    secretRef: { name: "login" },
  }),
}

/** Everything that a tenant reads of an attempt. */
async function played({ analysis = {}, spec = {} }: Attempt) {
  const world = await tenantWorld()
  const canary = canaryWith(analysis, spec)
  const told: string[] = []
  const measuring = createMeasuring(world.wiring, world.deps)
  const checks = await untilThere(() => measuring.checksOf(roundOf(canary)))
  for (const check of checks) told.push("why" in check ? check.why : check.verdict)
  const hooks = createHooks(world.wiring, world.deps)
  for (const each of canary.spec.analysis.webhooks) {
    const call = callFor("shop/web", canary, { id: "r", checksum: "c" }, { hook: each, round: 1, phase: "Waiting" })
    const answer = await untilThere(() => hooks.answerOf(call))
    expect(answer.yes).toBe(false)
    told.push(answer.why)
  }
  const events = {
    record: (_: unknown, { message }: { message: string }) => void told.push(message.replace("alert x: ", "")),
    flush: async () => {},
  }
  const alerts = createAlerts({ ...world.wiring, log: silentLogger, events, metrics: undefined }, world.deps)
  alerts.send(canary, { severity: "error", text: "t", phase: "Failed", checksum: "c" })
  await alerts.drain()
  return { told, ...world }
}

test.each(Object.entries(attempts))("%s", async (_, attempt) => {
  const { told, dialled, secretsRead, seen } = await played(attempt)
  expect(told).toEqual([expect.stringMatching(attempt.says)])
  expect(dialled.map(({ address }) => address)).toEqual(attempt.reaches ?? [])
  expect(secretsRead.filter(name => !name.startsWith("shop/"))).toEqual([])
  expect(JSON.stringify(seen.map(({ headers, body }) => [headers, body]))).not.toMatch(/bank-token|monitoring-token/)
})

test("a name that turns is connected to where it was checked, or not at all", async () => {
  for (let time = 0; time < 2; time++) {
    const { dialled } = await played(hook("http://turning.test/", /./))
    expect(dialled.map(({ address }) => address)).toEqual(["1.1.1.1"])
  }
})

test("the tenant's own Service and a shared template are reached", async () => {
  const own = await played(metricsServer("http://prometheus:9090", /./))
  expect(own.dialled.map(({ address }) => address)).toEqual(["10.1.0.7"])
  const shared = await played(template({ name: "errors", namespace: "monitoring" }, /./))
  expect(shared.seen[0]!.headers.authorization).toBe("Bearer monitoring-token")
  expect(shared.told).toEqual(["the metric service answered 302"])
})
