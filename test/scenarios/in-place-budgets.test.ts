import { describe, expect, test } from "vitest"
import { loseAnswer, type Matcher, nth, stale } from "#cluster-sim/faults/faults.ts"
import { createLag } from "#cluster-sim/faults/lag.ts"
import type { Json } from "#cluster-sim/index.ts"
import { daemonSets, deployments, statefulSets } from "#controllers/in-place/resources.ts"
import { parseNote } from "#core/in-place/marks.ts"
import { inPlaceAnnotation, settingAnnotations, strategyAnnotation } from "#core/in-place/names.ts"
import { watches } from "#test/simulation/fates.ts"
import {
  type InPlaceOptions,
  type InPlaceStory,
  imageOf,
  inPlaceStory,
  isHeld,
  isRolledOut,
  v1,
  v2,
} from "#test/support/in-place-story.ts"

// One PodDisruptionBudget over the pods of several workloads, of one kind and of several.

const resources = { Deployment: deployments, StatefulSet: statefulSets, DaemonSet: daemonSets }
type Kind = keyof typeof resources

const manifest = (kind: Kind, name: string, { hasGate = false, annotations = {}, ...spec }: Json = {}): Json => ({
  apiVersion: "apps/v1",
  kind,
  metadata: {
    name,
    namespace: "default",
    annotations: { [strategyAnnotation]: "InPlaceIfPossible", ...annotations },
  },
  spec: {
    ...(kind !== "DaemonSet" && { replicas: 3 }),
    ...(kind === "StatefulSet" && { serviceName: name }),
    ...(kind === "Deployment" && { strategy: { rollingUpdate: { maxUnavailable: 2 } } }),
    selector: { matchLabels: { app: name } },
    ...spec,
    template: {
      metadata: { labels: { app: name } },
      spec: {
        containers: [{ name: "web", image: v1 }],
        ...(hasGate && { readinessGates: [{ conditionType: "autoimagemanager.io/InPlaceUpdateReady" }] }),
      },
    },
  },
})

const budget = (spec: Json, ...names: string[]): Json => ({
  apiVersion: "policy/v1",
  kind: "PodDisruptionBudget",
  metadata: { name: "shared", namespace: "default" },
  spec: { ...spec, selector: { matchExpressions: [{ key: "app", operator: "In", values: names }] } },
})

/** The workload `web` of the story, and others beside it, all under one budget. */
async function together(others: Readonly<Record<string, Kind>>, spec: Json, options: InPlaceOptions = {}) {
  // A budget's status is seconds behind: nothing but the reservation keeps a second workload away.
  const lag = createLag()
  const story = await inPlaceStory({
    spec: { strategy: { rollingUpdate: { maxUnavailable: 2 } } },
    lags: { "disruption-controller": lag },
    ...options,
  })
  const { world } = story
  const { hasGate, annotations } = options
  for (const [name, kind] of Object.entries(others)) await world.apply(manifest(kind, name, { hasGate, annotations }))
  const all: Readonly<Record<string, Kind>> = { web: "Deployment", ...others }
  const found = (name: string) => world.get(resources[all[name]!], name, "default")
  for (const name of Object.keys(all))
    await world.until(`${name} is rolled out`, async () => isRolledOut(await found(name)), "5m")
  await world.apply(budget(spec, ...Object.keys(all)))
  await world.settle("10s")
  lag.behind(5000, ["Pod"])
  const from = world.history.length
  const setImages = async (...names: string[]) => {
    const body = { spec: { template: { spec: { containers: [{ name: "web", image: v2 }] } } } }
    await Promise.all(
      names.map(name =>
        world.client.patch(resources[all[name]!], { name, namespace: "default" }, { type: "strategic", body }),
      ),
    )
  }
  const says = async (name: string) => parseNote((await found(name)).metadata.annotations[inPlaceAnnotation])
  const free = async (...names: string[]) => {
    for (const name of names) await world.until(`${name} is released`, async () => !isHeld(await found(name)), "30m")
  }
  return { story, world, lag, names: Object.keys(all), from, setImages, says, free }
}

/** The most pods that were drained, not ready, or changed and not yet restarted, at any time. */
function mostDown({ world }: InPlaceStory, from: number): number {
  const down = new Map<string, boolean>()
  let most = 0
  for (const [index, { object, type }] of world.history.entries()) {
    if (object.kind !== "Pod") continue
    const isReady = object.status?.conditions?.find(({ type: is }: Json) => is === "Ready")?.status === "True"
    const isBehind = object.status?.containerStatuses?.some(({ name, image }: Json) => image !== imageOf(object, name))
    const isDrained = object.status?.conditions?.some(({ reason }: Json) => reason === "InPlaceUpdate")
    down.set(object.metadata.uid, type !== "DELETED" && (!isReady || isBehind || isDrained))
    if (index >= from) most = Math.max(most, [...down.values()].filter(Boolean).length)
  }
  return most
}

const everyImage = async ({ pods }: InPlaceStory) => new Set((await pods()).map(pod => imageOf(pod)))

describe("a budget over several workloads", () => {
  for (const [what, others, hasGate] of [
    ["two Deployments", { api: "Deployment" }, false],
    ["a Deployment and a StatefulSet with gates", { db: "StatefulSet" }, true],
    ["three Deployments and a StatefulSet", { api: "Deployment", shop: "Deployment", db: "StatefulSet" }, false],
  ] as const)
    test(`${what}: one pod at a time where one is allowed`, async () => {
      const { story, names, from, setImages, free } = await together(others, { maxUnavailable: 1 }, { hasGate })
      await setImages(...names)
      await free(...names)
      expect(mostDown(story, from)).toBe(1)
      expect(await everyImage(story)).toEqual(new Set([v2]))
    })

  test("two at a time where two are allowed: what one workload leaves, another takes", async () => {
    const { story, names, from, setImages, free } = await together({ db: "StatefulSet" }, { maxUnavailable: 2 })
    await setImages(...names)
    await free(...names)
    expect(mostDown(story, from)).toBe(2)
  })

  test("a workload that fails and stays down takes one place, and not two: the other goes on", async () => {
    const annotations = { [settingAnnotations.onFailure]: "Stop" }
    const { story, from, setImages, free } = await together(
      { db: "StatefulSet" },
      { maxUnavailable: 2 },
      { annotations, spec: { minReadySeconds: 5, strategy: { rollingUpdate: { maxUnavailable: 1 } } } },
    )
    const crashing = `${v2}-crashing`
    story.registries.push(crashing, { sizeBytes: 7, exits: { afterMs: 500, exitCode: 1 } })
    await story.setImage({ web: crashing })
    await story.says("UpdateFailed", "30m")
    // By then it is down for minutes at a time.
    await story.world.advance("10m")
    await setImages("db")
    await free("db")
    expect(mostDown(story, from)).toBe(2)
  })

  test("a write without an answer keeps its place until the pod is seen again", async () => {
    const annotations = { [settingAnnotations.graceSeconds]: "20" }
    const { story, world, lag, from, setImages, free } = await together(
      { db: "StatefulSet" },
      { maxUnavailable: 1 },
      { hasGate: true, annotations, isAlone: true },
    )
    const isDrain: Matcher = ({ method, path }) => method === "PATCH" && /\/pods\/web-[^/]+\/status/.test(path)
    story.update({ faults: [loseAnswer(nth(isDrain, 1)), stale(watches("pods"), world.clock, 15_000)] })
    lag.behind(30_000, ["Pod"])
    await setImages("web", "db")
    await free("web", "db")
    expect(mostDown(story, from)).toBe(1)
  })

  test("a process that takes over counts what the last one has begun", async () => {
    const annotations = { [settingAnnotations.graceSeconds]: "20" }
    const { story, world, from, setImages, free } = await together(
      { db: "StatefulSet" },
      { maxUnavailable: 1 },
      { hasGate: true, annotations, isAlone: true },
    )
    const first = story.update()
    await setImages("web")
    const isDrained = ({ status }: Json) => status.conditions.some(({ reason }: Json) => reason === "InPlaceUpdate")
    await world.until("a pod is drained", async () => (await story.pods()).some(isDrained))
    await setImages("db")
    await first.stop()
    story.update()
    await free("web", "db")
    expect(mostDown(story, from)).toBe(1)
  })
})
