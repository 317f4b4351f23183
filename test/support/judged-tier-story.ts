import { expect } from "vitest"
import { crdOf } from "#api/crd.ts"
import { AlternateImageSource } from "#api/v1alpha1/alternateimagesource/index.ts"
import { Canary } from "#api/v1alpha1/canary/index.ts"
import { ContainerRecreateRequest } from "#api/v1alpha1/containerrecreaterequest/index.ts"
import { MetricTemplate } from "#api/v1alpha1/metrictemplate/index.ts"
import { ServiceImage } from "#api/v1alpha1/serviceimage/index.ts"
import type { Fault } from "#cluster-sim/faults/faults.ts"
import type { Json } from "#cluster-sim/index.ts"
import { createHooks } from "#controllers/hooks.ts"
import { createMeasuring } from "#controllers/measure.ts"
import type { Secrets } from "#controllers/secrets.ts"
import { createServiceImageController } from "#controllers/serviceimage/controller.ts"
import type { Judges } from "#controllers/serviceimage/questions.ts"
import { serviceImages } from "#controllers/serviceimage/resources.ts"
import { metricTemplates } from "#controllers/way-out.ts"
import { workloadKind } from "#core/workloads/kinds.ts"
import type { Egress } from "#egress/index.ts"
import type { Wiring } from "#runtime/controller.ts"
import { holdPlain } from "#runtime/kind-controller.ts"
import { resourceOf } from "#runtime/resource.ts"
import { application, service, trafficStory } from "./traffic.ts"

// A fleet of Deployments under requests, two in each tier: its first tier is judged by what Prometheus says of its pods.

export const [v1, v2, v3] = ["registry.example.com/web:1", "registry.example.com/web:2", "registry.example.com/web:3"]
export const deployments = resourceOf(workloadKind("Deployment")!)
const apiVersion = "autoimagemanager.io/v1alpha1"

const requests = 'http_requests_total{kubernetes_namespace="{{ namespace }}", kubernetes_pod_name=~"{{ tier }}-.*"'
export const template: Json = {
  apiVersion,
  kind: "MetricTemplate",
  metadata: { name: "error-rate", namespace: "default" },
  spec: {
    provider: { type: "prometheus", address: "http://prometheus.example.com:9090" },
    query: `(sum(rate(${requests}, status=~"5.*"}[{{ interval }}])) or vector(0)) / sum(rate(${requests}}[{{ interval }}])) * 100`,
  },
}
export const analysis = {
  interval: "1m",
  threshold: 2,
  metrics: [{ name: "error-rate", templateRef: { name: "error-rate" }, thresholdRange: { max: 5 } }],
}
const serviceImage = (tier: Json = {}, more: Json = {}): Json => ({
  apiVersion,
  kind: "ServiceImage",
  metadata: { name: "web" },
  spec: {
    target: { apiVersion: "apps/v1", kind: "Deployment", image: { container: "web" } },
    defaultImage: v1,
    analysisNamespace: "default",
    tiers: [
      { upgradeTier: "early", priority: 1, analysis, ...tier },
      { upgradeTier: "late", priority: 0 },
    ],
    pace: { podsPerSecond: 0 },
    ...more,
  },
})

type Options = {
  tier?: Json
  spec?: Json
  hook?: () => number
  secrets?: Secrets
  /** How many objects the judged tier has. */
  early?: number
  faults?: Fault[]
  /** Whether clients send requests. */
  isUsed?: boolean
}

const noSecrets: Secrets = { read: async () => ({ ok: false, reason: "SecretMissing", message: "none" }) }

export async function judgedTierStory(options: Options = {}) {
  const { tier, spec, hook = () => 200, secrets = noSecrets, early = 2, faults = [], isUsed = true } = options
  const names = [...Array.from({ length: early }, (_, index) => `early-${index + 1}`), "late-1", "late-2"]
  const told = await trafficStory({ versions: { [v2]: { errorRate: 0.3 } } })
  const { world, traffic, prometheus } = told
  const asked = { metrics: 0, hooks: [] as Json[] }
  const egress: Egress = {
    async request({ url, body, method, onBehalfOf, namespace }) {
      const { pathname, search, hostname } = new URL(url)
      const reply = (status: number, text = "") => ({ ok: true as const, status, headers: {}, body: Buffer.from(text) })
      if (hostname === "gate.example.com") {
        asked.hooks.push({ namespace, method, ...JSON.parse(String(body)) })
        return reply(hook())
      }
      asked.metrics++
      expect({ namespace, onBehalfOf }).toEqual({ namespace: "default", onBehalfOf: "default" })
      const answer = await prometheus.answer(`${pathname}${search}`)
      return reply(answer.status, typeof answer.body === "string" ? answer.body : JSON.stringify(answer.body))
    },
  }
  const judges = (wiring: Wiring): Judges => {
    const around = {
      egress,
      secrets,
      sharing: { isShared: async () => false },
    }
    const templates = wiring.watch(metricTemplates, { project: holdPlain })
    return {
      measuring: createMeasuring(wiring, { ...around, templates: templates as never }),
      hooks: createHooks(wiring, around),
    }
  }
  // All that it watches, so that no watch is tried again and again.
  const kinds = [ServiceImage, MetricTemplate, AlternateImageSource, ContainerRecreateRequest, Canary]
  await world.apply(...kinds.map(kind => crdOf(kind) as Json), template)
  for (const name of names) {
    const app = application(name, { image: v1, replicas: 2 })
    app.metadata.labels = { "upgrade-tier": name.split("-")[0] }
    await world.apply(app, service(name, { app: name }))
  }
  const available = async () => (await world.list(deployments)).every(({ status }) => status?.availableReplicas === 2)
  await world.until("pods are ready", available, "10m")
  for (const name of isUsed ? names : [])
    traffic.send({ perSecond: 4, through: { service: `default/${name}` }, connections: "fresh" })
  const run = () => world.run([createServiceImageController({}, judges)], { faults })
  const process = run()
  await world.apply(serviceImage(tier, spec))
  const get = () => world.get(serviceImages, "web")
  const is = (type: string) => async () => {
    const { metadata, status } = await get()
    const found = status?.conditions.find((each: Json) => each.type === type)
    return found?.status === "True" && found.observedGeneration === metadata.generation
  }
  await world.until("v1 everywhere", is("Complete"), "10m")
  const setImage = (defaultImage: string) => world.patch(serviceImages, "web", { spec: { defaultImage } })
  const condition = async (type: string) => (await get()).status.conditions.find((each: Json) => each.type === type)
  const images = async () =>
    Object.fromEntries(
      (await world.list(deployments)).map(({ metadata, spec }) => [
        metadata.name,
        spec.template.spec.containers[0].image.split(":").at(-1),
      ]),
    )
  return { ...told, asked, process, run, get, is, setImage, condition, images }
}
