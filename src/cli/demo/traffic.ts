import { type Json, parseRegistries } from "#cluster-sim/index.ts"
import { progressOf, type SeenCanary } from "#operations/canary/progress.ts"
import { canaries } from "../kinds.ts"
import { canaryLine } from "../render/canary.ts"
import { change, imageChange, podsOf, shop, web } from "./shop.ts"
import type { Stage, Story } from "./story.ts"

const registry = "registry.example.com"
const imageOf = (tag: string) => `${registry}/shop/web:${tag}`
const host = "shop.example.com"
const replicas = 4

/** A good version earns its traffic and its very pods stay; a bad one is caught with a fifth of the requests. */
export const traffic: Story = {
  name: "traffic",
  title: "a new version earns its requests; a bad one is caught with a fifth of them",
  nodes: 3,
  registries: parseRegistries(
    `registries: { ${registry}: { images: { shop/web: { v1: {}, v2: {}, v3: { errorPercent: 20 } } } } }`,
  ),
  traffic: [{ host, perSecond: 50 }],
  operators: [],
  async tellWith(stage) {
    const readinessProbe = { httpGet: { path: "/", port: 8080 }, periodSeconds: 1 }
    // A pod that ends goes on answering for a moment: until every gateway has noticed.
    const lifecycle = { preStop: { sleep: { seconds: 5 } } }
    const app = { name: "web", image: imageOf("v1"), ports: [{ containerPort: 8080 }], readinessProbe, lifecycle }
    await stage.world.apply(shop(replicas, [app]))
    stage.tell(`A shop of ${replicas} pods on v1. Its clients send 50 requests a second to ${host}.
A Canary says how a new version proves itself: 20 % of the requests for a minute, then 50 %, and at each step at least
99 % of its answers must be good.`)
    await stage.world.apply(canary)
    await stage.show(() => look(stage, "Initialized"), 300)

    const before = requestsOf(stage)
    stage.tell("$ kubectl set image deploy/web web=v2")
    await change(stage, imageChange(imageOf("v2")))
    await stage.show(() => look(stage, "Progressing", 50), 600)
    const tested = await podsOn(stage, "v2")
    await stage.show(() => look(stage, "Succeeded"), 600)
    const after = requestsOf(stage)
    const kept = (await podsOn(stage, "v2")).filter(uid => tested.includes(uid)).length
    stage.tell(`v2 has all requests. ${kept} of the ${tested.length} pods that were tested are the shop's now: nothing was copied or restarted.
${after.requests - before.requests} requests were sent meanwhile, and ${after.failed - before.failed} failed.`)
    await stage.pause(3)

    stage.tell("v3 answers every fifth request with 500.\n$ kubectl set image deploy/web web=v3")
    const start = requestsOf(stage)
    await change(stage, imageChange(imageOf("v3")))
    await stage.show(() => look(stage, "Failed", 0), 900)
    const end = requestsOf(stage)
    const errors = end.errors - start.errors
    const all = end.requests - start.requests
    stage.tell(`Caught at 20 %: of ${all} requests ${errors} got an error of v3, and ${end.failed - start.failed} got no answer.
v2 answers everything again, and the Deployment still runs it.`)
    await stage.type(`why canary/${web.name} -n ${web.namespace}`)
    await stage.type(`history canary/${web.name} -n ${web.namespace}`)
  },
  next: [
    "docs/cli.md                  aim up --traffic, to do it yourself",
    "docs/guides/from-flagger.md  with the manifests of Flagger",
    "aim demo --list              other stories",
  ],
}

const canary: Json = {
  apiVersion: "autoimagemanager.io/v1alpha1",
  kind: "Canary",
  metadata: web,
  spec: {
    targetRef: { apiVersion: "apps/v1", kind: "Deployment", name: web.name },
    service: { port: 80, targetPort: 8080, hosts: [host], gatewayRefs: [{ name: "gateway", namespace: "default" }] },
    analysis: {
      interval: "1m",
      threshold: 2,
      stepWeights: [20, 50],
      metrics: [{ name: "request-success-rate", interval: "30s", thresholdRange: { min: 99 } }],
    },
  },
}

function requestsOf({ world }: Stage): { requests: number; errors: number; failed: number } {
  const { requests, errors, failed } = world.traffic!.clients.get(host)!.record()
  return { requests, errors, failed }
}

const podsOn = async (stage: Stage, tag: string): Promise<string[]> =>
  (await podsOf(stage))
    .filter(({ spec }) => spec.containers[0].image === imageOf(tag))
    .map(({ metadata }) => metadata.uid)

async function look(stage: Stage, phase: string, weight?: number): Promise<{ text: string; isSo: boolean }> {
  const object = await stage.world.client.get(canaries, web)
  const progress = progressOf(object as unknown as SeenCanary)
  // A run that has failed stays in the status until its pods are gone, and only then stands in the history.
  const isOver = phase !== "Failed" || progress.run === undefined
  const isSo = progress.phase === phase && isOver && (weight === undefined || progress.weight === weight)
  return { text: `  ${canaryLine(progress)}\n`, isSo }
}
