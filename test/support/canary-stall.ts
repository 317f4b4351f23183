import { expect } from "vitest"
import { forEachLimited } from "#lib/batch.ts"
import { floor, type Json, onKwok, uniqueNamespace, until } from "./floor.ts"
import { byService, canaryManifest } from "./real-canary.ts"
import { delayCaches, pidOf } from "./real-in-place.ts"

/**
 * So many Deployments with a Canary each, whose tested ReplicaSets are handed over while kube-controller-manager is
 * stopped and continued, with caches that are behind: no pod is replaced, and each Deployment has its two ReplicaSets and
 * no third.
 */
export async function expectHandOversHarmless(count: number): Promise<void> {
  const { api } = floor()
  const namespace = await uniqueNamespace()
  const patience = { withinMs: 90_000 + 2000 * count }
  const names = Array.from({ length: count }, (_, index) => `web-${index}`)
  // All at once would keep the server busy for longer than a request waits for its answer.
  const each = (go: (name: string) => Promise<unknown>) =>
    forEachLimited(names, 20, async name => void (await go(name)))
  const apps = `/apis/apps/v1/namespaces/${namespace}`
  const canaries = `/apis/autoimagemanager.io/v1alpha1/namespaces/${namespace}/canaries`
  const list = async (path: string): Promise<Json[]> => (await api.get(path)).items
  const all = async (path: string, isSo: (object: Json) => unknown) => (await list(path)).every(isSo)
  const own = ({ metadata }: Json) => names.includes(metadata.name)

  await each(name => api.create(`${apps}/deployments`, deploymentOf(name)))
  await until(
    "their pods are there",
    () => all(`${apps}/deployments`, ({ status }) => status?.availableReplicas === 1),
    {
      ...patience,
    },
  )
  // The pods of the version before stay for a while: all hand-overs begin after a time in which every run comes so far.
  const spec = byService({ iterations: 1 }, { skipAnalysis: true, scaleDownDelaySeconds: 20 + Math.ceil(count / 4) })
  await each(name => {
    const { metadata, ...rest } = canaryManifest(spec)
    const targetRef = { ...rest.spec.targetRef, name }
    return api.create(canaries, { ...rest, metadata: { ...metadata, name }, spec: { ...rest.spec, targetRef } })
  })
  await until("all are adopted", () => all(canaries, ({ status }) => status?.phase === "Initialized"), patience)
  const body = { spec: { template: { spec: { containers: [{ name: "web", image: "web:2" }] } } } }
  await each(name => api.patchStrategically(`${apps}/deployments/${name}`, body))
  await until("all have their requests", () => all(canaries, ({ status }) => status.phase === "Finalising"), patience)
  const pods = async () => list(`/api/v1/namespaces/${namespace}/pods`)
  const ofTarget = (all: Json[]) =>
    all.filter(({ spec }) => spec.containers[0].image === "web:2").map(({ metadata }) => metadata.uid as string)
  const tested = ofTarget(await pods()).sort()
  expect(tested).toHaveLength(count)

  // What our controller does by itself: without the fence it would release too.
  const moved = async () => {
    const sets = await list(`${apps}/replicasets`)
    const deployments = await list(`${apps}/deployments`)
    const owned = sets.filter(({ metadata, spec }) => {
      const owner = metadata.ownerReferences?.[0]?.name
      return names.includes(owner) && spec.template.spec.containers[0].image === "web:2"
    })
    return { owned: owned.length, held: deployments.filter(({ metadata }) => metadata.annotations?.[held]).length }
  }
  const isOver = () => all(canaries, ({ status }) => status.phase === "Succeeded")
  const manager = pidOf("kube-controller-manager")
  try {
    process.kill(manager, "SIGSTOP")
    await delayCaches(namespace)
    // Stopped across each part of the way in turn: until nothing moves any more, then for a moment it may go on.
    for (let rounds = 0; rounds < 60 && !(await isOver()); rounds++) {
      let last = ""
      await until(
        "nothing moves",
        async () => {
          const now = JSON.stringify(await moved())
          const isStill = now === last
          last = now
          return isStill
        },
        { ...patience, everyMs: 1000 },
      )
      const before = last
      process.kill(manager, "SIGCONT")
      await until("something moves", async () => JSON.stringify(await moved()) !== before || (await isOver()), {
        withinMs: 5000,
        everyMs: 50,
      }).catch(() => {})
      process.kill(manager, "SIGSTOP")
    }
  } finally {
    process.kill(manager, "SIGCONT")
  }
  await until("all have succeeded", isOver, patience)
  await until("the other pods are gone", async () => (await pods()).length === count, patience)
  expect(ofTarget(await pods()).sort()).toEqual(tested)
  const deployments = await list(`${apps}/deployments`)
  expect(deployments.every(own)).toBe(true)
  expect(deployments.filter(({ status }) => status.collisionCount > 0)).toEqual([])
  const sets = await list(`${apps}/replicasets`)
  expect(sets).toHaveLength(2 * count)
  expect(sets.filter(({ spec }) => spec.replicas > 0)).toHaveLength(count)
}

const held = "autoimagemanager.io/held"

const deploymentOf = (name: string): Json => ({
  metadata: { name },
  spec: {
    replicas: 1,
    selector: { matchLabels: { app: name } },
    template: {
      metadata: { labels: { app: name } },
      spec: { ...onKwok, containers: [{ name: "web", image: "web:1", ports: [{ name: "http", containerPort: 80 }] }] },
    },
  },
})
