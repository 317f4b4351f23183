import { createServer, type Server } from "node:http"
import type { AddressInfo } from "node:net"
import { text } from "node:stream/consumers"
import { expect, test } from "vitest"
import { allowanceOf } from "#egress/index.ts"
import { sendTraffic, startTraffic, type Traffic } from "#test/support/clients.ts"
import {
  gatewayAddress,
  pushShop,
  readyPods,
  routeToTraefikService,
  shopDeployment,
  traefikAddress,
  useAddOns,
} from "#test/support/data-planes.ts"
import { type AtEnd, floor, type Json, uniqueNamespace, until } from "#test/support/floor.ts"
import { useCanaries } from "#test/support/real-canary.ts"
import { gateway } from "#tools/kube/gateway.ts"

// The Canaries of Flagger's own test scripts (fluxcd/flagger, test/contour, test/traefik, test/kubernetes, and test/gatewayapi of
// the time when that ran on Contour). Only apiVersion, image, namespace and the hosts of gateway, hooks and Prometheus differ.
// They end as there: Initialized, Succeeded, Failed.

useAddOns("proxy", "gateway", "traefik", "prometheus")

/** Where commands of the scripts find the gateways, by the hosts that they name here. */
const gateways: Record<string, string> = {
  "gateway.example.com": gatewayAddress,
  "traefik.example.com": traefikAddress,
}

/** Stands in for Flagger's load tester: it opens its gate, and carries out the commands that the scripts send. */
let tester: Server
let atEndOfFile: AtEnd
let prometheus = ""

useCanaries(async atEnd => {
  atEndOfFile = atEnd
  tester = createServer(async (request, response) => {
    const body = await text(request)
    const isYes =
      request.url?.startsWith("/gate/approve") || (await carryOut(JSON.parse(body || "{}")).catch(() => false))
    response.writeHead(isYes ? 200 : 500).end()
  })
  await new Promise<void>(resolve => tester.listen(0, "127.0.0.1", resolve))
  atEnd(() => void tester.close())
  prometheus = (await floor().add("prometheus"))!
  return { allowEgress: [`*=${testerHost()}`, allowanceOf(new URL(prometheus))] }
})

const testerHost = () => `127.0.0.1:${(tester.address() as AddressInfo).port}`

const underWay = new Map<string, Traffic>()

/** `hey` begins in the background, once for each command; `curl` is answered by its outcome. */
async function carryOut({ namespace, metadata }: Json): Promise<boolean> {
  const cmd: string = metadata?.cmd ?? ""
  const url = new URL(/https?:\/\/\S+/.exec(cmd)![0])
  const address = gateways[url.hostname] ?? (await addressOf(namespace, url))
  const host = /-host (\S+)/.exec(cmd)?.[1]
  const [, name, value] = /-H '([^:]+): ([^']+)'/.exec(cmd) ?? []
  const headers = { ...(host && { host }), ...(name && value && { [name.toLowerCase()]: value }) }
  const asked = { addresses: [address], path: url.pathname, headers }
  if (cmd.startsWith("curl")) {
    const { failures, answers } = await sendTraffic({ ...asked, perSecond: 1, requestsMost: 1 }, atEndOfFile)
    return failures.length === 0 && answers.every(({ status }) => status === 200)
  }
  const key = `${namespace} ${cmd}`
  if (!underWay.has(key)) underWay.set(key, startTraffic({ ...asked, perSecond: 20, connections: 2 }, atEndOfFile))
  return true
}

/** Of a Service of the namespace, as a pod would find it. */
async function addressOf(namespace: string, { hostname, port }: URL): Promise<string> {
  const { spec } = await floor().api.get(`/api/v1/namespaces/${namespace}/services/${hostname.split(".")[0]}`)
  return `${spec.clusterIP}:${port || 80}`
}

const templates = {
  latency: `histogram_quantile(0.99,
    sum(rate(envoy_cluster_upstream_rq_time_bucket{
      envoy_cluster_name=~"{{ namespace }}_{{ target }}-canary_[0-9a-zA-Z-]+",
    }[{{ interval }}])) by (le)
  )/1000`,
  "error-rate": `100 - sum(rate(envoy_cluster_upstream_rq{
      envoy_cluster_name=~"{{ namespace }}_{{ target }}-canary_[0-9a-zA-Z-]+",
      envoy_response_code!~"5.*"
    }[{{ interval }}]))
    /
    sum(rate(envoy_cluster_upstream_rq{
      envoy_cluster_name=~"{{ namespace }}_{{ target }}-canary_[0-9a-zA-Z-]+",
    }[{{ interval }}]))
    * 100`,
}

/** The namespace with the templates, which its administrator shares. */
async function system(atEnd: AtEnd): Promise<string> {
  const { api } = floor()
  const namespace = await uniqueNamespace({}, atEnd)
  await api.patch(`/api/v1/namespaces/${namespace}`, {
    metadata: { annotations: { "autoimagemanager.io/shared": "true" } },
  })
  for (const [name, query] of Object.entries(templates))
    await api.create(`/apis/autoimagemanager.io/v1alpha1/namespaces/${namespace}/metrictemplates`, {
      apiVersion: "autoimagemanager.io/v1alpha1",
      kind: "MetricTemplate",
      metadata: { name },
      spec: { provider: { type: "prometheus", address: prometheus }, query },
    })
  return namespace
}

const byTemplates = (namespace: string, interval: string): Json[] => [
  { name: "error-rate", templateRef: { name: "error-rate", namespace }, thresholdRange: { max: 1 }, interval },
  { name: "latency", templateRef: { name: "latency", namespace }, thresholdRange: { max: 0.5 }, interval: "30s" },
]

const loadTest = (cmd: string): Json => ({
  name: "load-test",
  type: "rollout",
  url: `http://${testerHost()}/`,
  timeout: "5s",
  metadata: { cmd, logCmdOutput: "true" },
})

const acceptance = (name: string, cmd: string): Json => ({
  ...{ name, type: "pre-rollout", url: `http://${testerHost()}/`, timeout: "10s" },
  metadata: { type: "bash", cmd },
})

const routed = (host: string): Json => ({
  ...{ port: 9898, portName: "http", hosts: [host] },
  gatewayRefs: [gateway],
})

const targetRef = { apiVersion: "apps/v1", kind: "Deployment", name: "podinfo" }

/** Deployment podinfo, as Flagger's workloads have it: container podinfod, port 9898. */
async function openPodinfo(atEnd: AtEnd) {
  const { api, kubectlRun } = floor()
  const namespace = await uniqueNamespace({}, atEnd)
  const [image, next, bad] = await Promise.all([
    pushShop("podinfo:6.0.0", { PORT: "9898" }),
    pushShop("podinfo:6.0.1", { PORT: "9898" }),
    pushShop("podinfo:6.0.2", { PORT: "9898", ERROR_RATE: "1" }),
  ])
  const deployment = shopDeployment("podinfo", image)
  const { template } = deployment.spec
  const [container] = template.spec.containers
  Object.assign(container, { name: "podinfod", ports: [{ name: "http", containerPort: 9898 }] })
  template.metadata.annotations["prometheus.io/port"] = "9898"
  await api.create(`/apis/apps/v1/namespaces/${namespace}/deployments`, deployment)
  await readyPods(namespace, 2, { app: "shop" })
  const path = `/apis/autoimagemanager.io/v1alpha1/namespaces/${namespace}/canaries`
  const kubectl = (...args: string[]) => kubectlRun("-n", namespace, ...args)
  const images = async () => {
    const { items } = await api.get(`/api/v1/namespaces/${namespace}/pods`)
    return items
      .filter(({ metadata }: Json) => !metadata.deletionTimestamp)
      .map(({ spec }: Json) => spec.containers[0].image)
  }
  return {
    ...{ namespace, kubectl, images, image, next, bad },
    canary: () => api.get(`${path}/podinfo`),
    create: (spec: Json) =>
      api.create(path, {
        apiVersion: "autoimagemanager.io/v1alpha1",
        kind: "Canary",
        metadata: { name: "podinfo", namespace },
        spec: { targetRef, ...spec },
      }),
    change: (spec: Json) => api.patch(`${path}/podinfo`, { spec }),
    setImage: (to: string) => kubectl("set", "image", "deployment/podinfo", `podinfod=${to}`),
    /** As the scripts do: the column of `kubectl get`. */
    untilShown: (phase: string) =>
      until(`kubectl shows ${phase}`, async () => (await kubectl("get", "canary/podinfo")).includes(phase), {
        withinMs: 420_000,
      }),
  }
}

test.concurrent("weights on the Gateway API: promoted, and a bad version is taken back", async ({ onTestFinished }) => {
  const shared = await system(onTestFinished)
  const podinfo = await openPodinfo(onTestFinished)
  const host = `${podinfo.namespace}.example.com`
  const hey = (path: string) => `hey -z 2m -q 10 -c 2 -host ${host} http://gateway.example.com${path}`
  await podinfo.create({
    progressDeadlineSeconds: 60,
    service: routed(host),
    analysis: {
      ...{ interval: "15s", threshold: 15, maxWeight: 50, stepWeight: 10 },
      metrics: byTemplates(shared, "1m"),
      webhooks: [loadTest(hey(""))],
    },
  })
  await podinfo.untilShown("Initialized")
  await podinfo.setImage(podinfo.next)
  await podinfo.untilShown("Succeeded")
  expect(await podinfo.images()).toEqual([podinfo.next, podinfo.next])

  await podinfo.change({
    progressDeadlineSeconds: 30,
    service: { ...routed(host), targetPort: 9898 },
    analysis: { threshold: 6, metrics: byTemplates(shared, "30s"), webhooks: [loadTest(hey("/status/500"))] },
  })
  await podinfo.setImage(podinfo.bad)
  await podinfo.untilShown("Failed")
  await until("the pods of the bad version are gone", async () => !(await podinfo.images()).includes(podinfo.bad))
  expect(await podinfo.images()).toEqual([podinfo.next, podinfo.next])
})

test.concurrent("A/B on the Gateway API: promoted", async ({ onTestFinished }) => {
  const shared = await system(onTestFinished)
  const podinfo = await openPodinfo(onTestFinished)
  const host = `${podinfo.namespace}.example.com`
  await podinfo.create({
    progressDeadlineSeconds: 60,
    service: routed(host),
    analysis: {
      ...{ interval: "15s", threshold: 10, iterations: 10 },
      match: [{ headers: { "x-canary": { exact: "insider" } } }],
      metrics: byTemplates(shared, "1m"),
      webhooks: [loadTest(`hey -z 2m -q 10 -c 2 -host ${host} -H 'X-Canary: insider' http://gateway.example.com`)],
    },
  })
  await podinfo.untilShown("Initialized")
  await podinfo.setImage(podinfo.next)
  await podinfo.untilShown("Succeeded")
  expect(await podinfo.images()).toEqual([podinfo.next, podinfo.next])
})

test.concurrent("Blue/Green on the Gateway API: promoted", async ({ onTestFinished }) => {
  const podinfo = await openPodinfo(onTestFinished)
  const { namespace } = podinfo
  await podinfo.create({
    progressDeadlineSeconds: 60,
    service: routed(`${namespace}.example.com`),
    analysis: {
      ...{ interval: "10s", threshold: 5, iterations: 5 },
      metrics: [
        { name: "request-success-rate", thresholdRange: { min: 99 }, interval: "1m" },
        { name: "request-duration", threshold: 500, interval: "30s" },
      ],
      webhooks: [
        {
          ...{ name: "smoke-test", type: "pre-rollout", url: `http://${testerHost()}/`, timeout: "15s" },
          metadata: { type: "bash", cmd: `curl -sd 'anon' http://podinfo-canary.${namespace}:9898/token | grep token` },
        },
        loadTest(`hey -z 2m -q 10 -c 2 http://podinfo-canary.${namespace}:9898`),
      ],
    },
  })
  await podinfo.untilShown("Initialized")
  await podinfo.setImage(podinfo.next)
  await podinfo.untilShown("Succeeded")
  expect(await podinfo.images()).toEqual([podinfo.next, podinfo.next])
})

test.concurrent("provider kubernetes: promoted by one flip, after a gate and an acceptance test", async ({
  onTestFinished,
}) => {
  const podinfo = await openPodinfo(onTestFinished)
  const { namespace } = podinfo
  const tests = `http://${testerHost()}/`
  await podinfo.create({
    provider: "kubernetes",
    progressDeadlineSeconds: 60,
    service: { port: 80, targetPort: 9898, name: "podinfo-svc", portDiscovery: true },
    analysis: {
      ...{ interval: "15s", threshold: 10, iterations: 5 },
      metrics: [
        { name: "request-success-rate", interval: "1m", thresholdRange: { min: 99 } },
        { name: "request-duration", interval: "30s", thresholdRange: { max: 500 } },
      ],
      webhooks: [
        { name: "gate", type: "confirm-rollout", url: `${tests}gate/approve` },
        {
          ...{ name: "acceptance-test", type: "pre-rollout", url: tests, timeout: "10s" },
          metadata: { type: "bash", cmd: "curl -sd 'test' http://podinfo-svc-canary/token | grep token" },
        },
        {
          ...{ name: "load-test", url: tests, timeout: "5s" },
          metadata: { type: "cmd", cmd: `hey -z 10m -q 10 -c 2 http://podinfo-svc-canary.${namespace}/` },
        },
      ],
    },
  })
  await podinfo.untilShown("Initialized")
  await podinfo.setImage(podinfo.next)
  await podinfo.untilShown("Succeeded")
  expect(await podinfo.images()).toEqual([podinfo.next, podinfo.next])
  expect(await podinfo.kubectl("rollout", "status", "deploy/podinfo", "--timeout=60s")).toContain("successfully rolled")
})

test.concurrent("provider contour: weights, a bad version is taken back, then A/B", async ({ onTestFinished }) => {
  const podinfo = await openPodinfo(onTestFinished)
  const { namespace } = podinfo
  const host = `${namespace}.example.com`
  const hey = (more: string, path = "") => `hey -z 1m -q 5 -c 2 ${more}-host ${host} http://gateway.example.com${path}`
  await floor().api.create(`/apis/projectcontour.io/v1/namespaces/${namespace}/httpproxies`, {
    ...{ apiVersion: "projectcontour.io/v1", kind: "HTTPProxy", metadata: { name: "podinfo-ingress", namespace } },
    spec: {
      virtualhost: { fqdn: host },
      includes: [{ name: "podinfo", namespace, conditions: [{ prefix: "/" }] }],
    },
  })
  const hooks = (load: string) => [
    acceptance("acceptance-test", "curl -sd 'test' http://podinfo-canary/token | grep token"),
    acceptance(
      "contour-acceptance-test",
      `curl -sd 'test' -H 'Host: ${host}' http://gateway.example.com/token | grep token`,
    ),
    loadTest(load),
  ]
  const metrics = [
    { name: "request-success-rate", threshold: 99, interval: "1m" },
    { name: "request-duration", threshold: 500, interval: "1m" },
  ]
  await podinfo.create({
    provider: "contour",
    progressDeadlineSeconds: 60,
    service: { port: 80, targetPort: 9898 },
    analysis: {
      ...{ interval: "15s", threshold: 15, maxWeight: 50, stepWeight: 10 },
      ...{ metrics, webhooks: hooks(hey("")) },
    },
  })
  await podinfo.untilShown("Initialized")
  await podinfo.setImage(podinfo.next)
  await podinfo.untilShown("Succeeded")
  expect(await podinfo.images()).toEqual([podinfo.next, podinfo.next])

  // The script's application answers /delay/1 after a second. Ours has errors instead.
  await podinfo.change({ analysis: { webhooks: hooks(hey("", "/delay/1")) } })
  await podinfo.setImage(podinfo.bad)
  await podinfo.untilShown("Failed")
  await until("the pods of the bad version are gone", async () => !(await podinfo.images()).includes(podinfo.bad))

  const match = [{ headers: { "x-canary": { exact: "insider" } } }]
  await podinfo.change({
    analysis: {
      ...{ interval: "10s", threshold: 5, iterations: 5, maxWeight: null, stepWeight: null },
      ...{ match, metrics, webhooks: [loadTest(hey("-H 'X-Canary: insider' "))] },
    },
  })
  await podinfo.setImage(podinfo.image)
  await podinfo.untilShown("Succeeded")
  expect(await podinfo.images()).toEqual([podinfo.image, podinfo.image])
})

test.concurrent("provider traefik: weights of a TraefikService that an IngressRoute names, with its metadata", async ({
  onTestFinished,
}) => {
  const podinfo = await openPodinfo(onTestFinished)
  const { namespace } = podinfo
  const host = `${namespace}.example.com`
  await routeToTraefikService(namespace, "podinfo")
  const tests = `http://${testerHost()}/`
  const apex = { labels: { test: "test-label" }, annotations: { test: "test-annotation" } }
  await podinfo.create({
    provider: "traefik",
    progressDeadlineSeconds: 60,
    service: { port: 80, targetPort: 9898, apex },
    analysis: {
      ...{ interval: "15s", threshold: 15, maxWeight: 60, stepWeight: 10 },
      metrics: [
        { name: "request-success-rate", threshold: 99, interval: "1m" },
        { name: "request-duration", threshold: 500, interval: "1m" },
      ],
      webhooks: [
        { name: "gate", type: "confirm-rollout", url: `${tests}gate/approve` },
        acceptance("acceptance-test", `curl -sd 'test' http://podinfo-canary.${namespace}/token | grep token`),
        acceptance(
          "traefik-acceptance-test",
          `curl -sd 'test' -H 'Host: ${host}' http://traefik.example.com/token | grep token`,
        ),
        loadTest(`hey -z 2m -q 5 -c 2 -host ${host} http://traefik.example.com`),
      ],
    },
  })
  await podinfo.untilShown("Initialized")
  const made = await floor().api.get(`/apis/traefik.io/v1alpha1/namespaces/${namespace}/traefikservices/podinfo`)
  expect(made.metadata).toMatchObject(apex)
  await podinfo.setImage(podinfo.next)
  await podinfo.untilShown("Succeeded")
  expect(await podinfo.images()).toEqual([podinfo.next, podinfo.next])
})
