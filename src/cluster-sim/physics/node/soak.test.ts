import { expect, test } from "vitest"
import { seededRandom } from "#runtime/random.ts"
import type { Json, Obj } from "../../object.ts"
import { nodeLifecycle } from "../kube-controllers/node-lifecycle.ts"
import { testWorld } from "./test-world.ts"

const images = ["ghcr.io/web:1", "ghcr.io/web:2", "ghcr.io/crash:1", "ghcr.io/missing:1", "ghcr.io/deaf:1", "Bad Name"]
const good = (image: string) => /web:/.test(image)

/** A few pods, with random actions of users, registries and machines in any order. */
async function soak(seed: number): Promise<void> {
  const { next } = seededRandom(seed)
  const pick = <T>(list: readonly T[]): T => list[Math.floor(next() * list.length)] as T
  const nodes = ["a", "b", "c"]
  const world = testWorld({ seed, nodes, more: [nodeLifecycle] })
  const pods = world.kind("Pod")
  world.registries.push("ghcr.io/crash:1", { exits: { afterMs: 2000, exitCode: 1 } })
  world.registries.push("ghcr.io/deaf:1", { neverReady: true, ignoresTerm: true })
  world.registries.remove("ghcr.io/missing:1")

  world.storage.subscribe(pods, ({ type, object, before }) => {
    if (type !== "MODIFIED" || !before) return
    const ended = (phase: string) => phase === "Succeeded" || phase === "Failed"
    if (ended(before.status?.phase)) expect(object.status.phase).toBe(before.status.phase)
    const counts = (pod: Obj): number[] => pod.status?.containerStatuses?.map((each: Json) => each.restartCount) ?? []
    const [now = 0] = counts(object)
    const [then = 0] = counts(before)
    expect(now === then || now === then + 1).toBe(true)
    if (before.status?.startTime) expect(object.status.startTime).toBe(before.status.startTime)
    if (before.status?.podIP) expect(object.status.podIP).toBe(before.status.podIP)
  })

  const actions: (() => void)[] = [
    () => {
      const probe = { httpGet: { port: 80 }, periodSeconds: 3, failureThreshold: 2 }
      const init = {
        initContainers: [{ name: "init", image: pick(images), ...(next() < 0.5 && { restartPolicy: "Always" }) }],
      }
      world.storage.create(pods, {
        apiVersion: "v1",
        kind: "Pod",
        metadata: { generateName: "pod-", namespace: "default" },
        spec: {
          terminationGracePeriodSeconds: pick([1, 5, 30]),
          ...(next() < 0.3 && init),
          containers: [
            {
              name: "app",
              image: pick(images),
              imagePullPolicy: pick(["Always", "IfNotPresent"]),
              ...(next() < 0.5 && { readinessProbe: probe }),
              ...(next() < 0.2 && { livenessProbe: probe }),
            },
          ],
        },
      })
    },
    () => {
      const pod = pick(world.storage.list(pods).items)
      if (pod) world.setImage(pod.metadata.name, pick(images.slice(0, 5)))
    },
    () => {
      const pod = pick(world.storage.list(pods).items)
      if (pod) world.remove(pod.metadata.name, pick([undefined, 0, 3]))
    },
    () => {
      const pod = pick(world.storage.list(pods).items)
      if (pod?.spec.nodeName) world.machines.endContainer(pod, "app", { exitCode: 137, reason: "OOMKilled" })
    },
    () => world.machines.stopKubelet(pick(nodes)),
    () => world.machines.startKubelet(pick(nodes)),
    () => world.registries.setFault("ghcr.io", pick([undefined, { kind: "status", status: 503 }, { kind: "timeout" }])),
    () => {
      world.cluster.stop()
      world.cluster.start()
    },
  ]
  for (let i = 0; i < 60; i++) {
    pick(i % 3 === 0 ? actions.slice(0, 1) : actions)()
    await world.clock.advance(Math.floor(next() * 20_000))
  }

  // Without faults, every pod that can run does run, and every deleted pod is gone.
  world.registries.setFault("ghcr.io", undefined)
  for (const node of nodes) world.machines.startKubelet(node)
  for (const pod of world.storage.list(pods).items)
    if (!pod.metadata.deletionTimestamp && pod.spec.containers[0].image !== "Bad Name")
      world.setImage(pod.metadata.name, "ghcr.io/web:1")
  await world.advance("20m")
  const left = world.storage.list(pods).items
  for (const { metadata, spec, status } of left) {
    expect(metadata.deletionTimestamp).toBeUndefined()
    const ready = status.conditions.find(({ type }: Json) => type === "Ready").status
    const hasStarted = status.conditions.find(({ type }: Json) => type === "Initialized").status === "True"
    const init = spec.initContainers?.[0]
    const initWorks = !init || hasStarted
    if (good(spec.containers[0].image) && initWorks && (!init?.restartPolicy || good(init.image)))
      expect(ready).toBe("True")
  }
  const addresses = left.flatMap(({ status }) => status.podIP ?? [])
  expect(new Set(addresses).size).toBe(addresses.length)
}

for (const seed of Array.from({ length: 4 }, (_, i) => i + 1))
  test(`whatever happens to pods, they reach their final state (seed ${seed})`, () => soak(seed), 60_000)
