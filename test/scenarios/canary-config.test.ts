import { describe, expect, test } from "vitest"
import { retryAnnotation } from "#api/v1alpha1/canary/annotations.ts"
import { answer } from "#cluster-sim/faults/faults.ts"
import type { Json } from "#cluster-sim/index.ts"
import { configMaps } from "#controllers/canary/configs.ts"
import { canaries, pods } from "#controllers/canary/resources.ts"
import { configMark } from "#core/canary/config-refs.ts"
import { core, type Resource } from "#runtime/resource.ts"
import { type CanaryOptions, type CanaryStory, canaryStory, uidsOf, v2 } from "#test/support/canary-story.ts"

// ConfigMaps and Secrets of a template: a change is proven like a new image, and each revision keeps what it was promoted
// with.

const secrets = core("secrets", "Secret")

const configMap = (data: Json, metadata: Json = {}): Json => ({
  apiVersion: "v1",
  kind: "ConfigMap",
  metadata: { name: "settings", namespace: "default", ...metadata },
  data,
})
const secret = (data: Json, fields: Json = {}): Json => ({
  apiVersion: "v1",
  kind: "Secret",
  metadata: { name: "key", namespace: "default" },
  type: "Opaque",
  data,
  ...fields,
})
/** As `aim grant default --secrets key` writes it. */
const grant: Json = {
  apiVersion: "rbac.authorization.k8s.io/v1",
  kind: "Role",
  metadata: { name: "aim-secrets", namespace: "default" },
  rules: [{ apiGroups: [""], resources: ["secrets"], resourceNames: ["key"], verbs: ["get", "list", "watch"] }],
}

const readsMap: CanaryOptions = {
  container: { envFrom: [{ configMapRef: { name: "settings" } }] },
  objects: [configMap({ color: "red" })],
  hasPolicy: true,
}
const readsSecret: CanaryOptions = {
  container: { env: [{ name: "KEY", valueFrom: { secretKeyRef: { name: "key", key: "key", optional: true } } }] },
  objects: [secret({ key: "b25l" })],
  hasPolicy: true,
}

const good = { name: "request-success-rate", verdict: "Good", value: 100 } as const
const bad = { name: "request-success-rate", verdict: "Bad", value: 1, why: "1 is below 99" } as const
const metrics = [{ name: "request-success-rate", thresholdRange: { min: 99 } }]

async function begin(options: CanaryOptions): Promise<CanaryStory> {
  const analysis = { interval: "1m", threshold: 2, stepWeights: [34, 67], metrics }
  const story = await canaryStory({ spec: { analysis }, ...options })
  story.says.checks = [good]
  await story.until("Initialized")
  await story.world.settle("1m")
  return story
}

/** The name of the ConfigMap that each pod reads. */
const readBy = (pod: Json): string => pod.spec.containers[0].envFrom[0].configMapRef.name
const snapshotsIn = async ({ world }: CanaryStory) =>
  (await world.list(configMaps)).filter(({ immutable }) => immutable === true)
const runsOf = async (story: CanaryStory) =>
  ((await story.canary()).status.history as Json[]).map(({ result, reason }) => `${result} ${reason}`)

/** As `kubectl delete` does. */
async function removed({ world }: CanaryStory, resource: Resource, { metadata }: Json): Promise<void> {
  const { name, namespace, uid } = metadata
  let isDone = false
  const done = world.client.delete(resource, { name, namespace }, { uid }).finally(() => {
    isDone = true
  })
  await world.until("the write is answered", () => isDone, "1m")
  await done
}

/** A pod is lost, and another one takes its place. */
async function replaced(story: CanaryStory): Promise<Json> {
  const before = await story.pods()
  const added = async () =>
    (await story.pods()).find(({ metadata }) => !before.some(each => each.metadata.uid === metadata.uid))
  await removed(story, pods, before[0]!)
  await story.world.until("it is replaced", async () => (await added())?.status.phase === "Running")
  return (await added())!
}

async function untilEnded(story: CanaryStory, runs: number): Promise<Json> {
  const isSo = async () => (await story.canary()).status.history?.length === runs
  await story.world.until(`${runs} runs have ended`, isSo, "1h").catch(async error => {
    throw new Error(`${error.message}; it is ${JSON.stringify((await story.canary()).status)}`)
  })
  await story.world.settle("1m")
  return (await story.canary()).status
}

describe("a ConfigMap", () => {
  test("that changes starts a run, is promoted, and its checksum is then the promoted one", async () => {
    const story = await begin(readsMap)
    const before = (await story.canary()).status.trackedConfigs
    expect(Object.keys(before)).toEqual(["configmap/settings"])
    await story.world.apply(configMap({ color: "blue" }))
    const status = await untilEnded(story, 1)
    expect(status.phase).toBe("Succeeded")
    expect(status.trackedConfigs["configmap/settings"]).not.toBe(before["configmap/settings"])
    expect(story.weights()).toEqual([0, 34, 67, 100, 0])
    const [snapshot, ...others] = await snapshotsIn(story)
    expect([snapshot?.data, others]).toEqual([{ color: "blue" }, []])
    expect((await story.pods()).map(readBy)).toEqual(Array(3).fill(snapshot?.metadata.name))
    // The template reads the ConfigMap itself, as its owner wrote it.
    const { template } = (await story.deployment()).spec
    expect(readBy(template)).toBe("settings")
    expect(Object.keys(template.metadata.annotations)).toEqual([configMark])
  })

  test("that is bad is taken back, pods of the source keep the old one, and it is not tried again", async () => {
    const story = await begin(readsMap)
    const { world } = story
    const before = (await story.canary()).status.trackedConfigs
    const uids = uidsOf(await story.pods())
    story.says.checks = [bad]
    await world.apply(configMap({ color: "broken" }))
    const status = await untilEnded(story, 1)
    expect([status.phase, await runsOf(story)]).toEqual(["Failed", ["RolledBack AnalysisFailed"]])
    expect(status.trackedConfigs).toEqual(before)
    expect(uidsOf(await story.pods())).toEqual(uids)
    // A pod that is made since has the old configuration.
    const added = await replaced(story)
    const read = await world.get(configMaps, readBy(added), "default")
    expect([read.data, read.immutable]).toEqual([{ color: "red" }, true])
    await world.advance("1h")
    expect(await runsOf(story)).toHaveLength(1)
  })

  test("that goes back after a failed run ends the hold without a run", async () => {
    const story = await begin(readsMap)
    const { world } = story
    const uids = uidsOf(await story.pods())
    story.says.checks = [bad]
    await world.apply(configMap({ color: "broken" }))
    await untilEnded(story, 1)
    await world.apply(configMap({ color: "red" }))
    await world.until("it is ready", async () =>
      (await story.canary()).status.conditions.some(({ type, status }: Json) => type === "Ready" && status === "True"),
    )
    await world.settle("1m")
    const { spec } = await story.deployment()
    expect([spec.paused ?? false, spec.template.metadata.annotations ?? {}]).toEqual([false, {}])
    expect(uidsOf(await story.pods())).toEqual(uids)
    expect(await runsOf(story)).toHaveLength(1)
    expect(await snapshotsIn(story)).toHaveLength(1)
  })

  test("that is corrected after a failed run starts another one", async () => {
    const story = await begin(readsMap)
    story.says.checks = [bad]
    await story.world.apply(configMap({ color: "broken" }))
    await untilEnded(story, 1)
    story.says.checks = [good]
    await story.world.apply(configMap({ color: "green" }))
    expect((await untilEnded(story, 2)).phase).toBe("Succeeded")
  })

  test("a person has a rejected one tried again", async () => {
    const story = await begin(readsMap)
    const { world } = story
    story.says.checks = [bad]
    await world.apply(configMap({ color: "odd" }))
    const { history } = await untilEnded(story, 1)
    story.says.checks = [good]
    const body = { metadata: { annotations: { [retryAnnotation]: history[0].id } } }
    await world.patch(canaries, "web", body, "default")
    expect((await untilEnded(story, 2)).phase).toBe("Succeeded")
  })

  test("that changes during a run restarts it", async () => {
    const story = await begin(readsMap)
    await story.world.apply(configMap({ color: "blue" }))
    await story.world.until("a weight", () => story.weights().includes(34))
    await story.world.apply(configMap({ color: "green" }))
    await untilEnded(story, 2)
    expect(await runsOf(story)).toEqual(["Promoted Promoted", "Superseded Restarted"])
    const [snapshot] = await snapshotsIn(story)
    expect((await story.pods()).map(readBy)).toEqual(Array(3).fill(snapshot?.metadata.name))
    expect(snapshot?.data).toEqual({ color: "green" })
  })

  test("with binary data counts too", async () => {
    const story = await begin(readsMap)
    await story.world.apply({ ...configMap({ color: "red" }), binaryData: { logo: "AAEC" } })
    expect((await untilEnded(story, 1)).phase).toBe("Succeeded")
    expect((await snapshotsIn(story))[0]?.binaryData).toEqual({ logo: "AAEC" })
  })

  for (const name of ["autoimagemanager.io/config-tracking", "flagger.app/config-tracking"])
    test(`with ${name}: disabled is not tracked`, async () => {
      const annotations = { [name]: "disabled" }
      const story = await begin({ ...readsMap, objects: [configMap({ color: "red" }, { annotations })] })
      await story.world.apply(configMap({ color: "blue" }, { annotations }))
      await story.world.advance("1h")
      const { phase, trackedConfigs, history } = (await story.canary()).status
      expect([phase, trackedConfigs, history]).toEqual(["Initialized", undefined, []])
    })

  test("that is optional may be missing, and counts when it is made", async () => {
    const container = { envFrom: [{ configMapRef: { name: "settings", optional: true } }] }
    const story = await begin({ ...readsMap, container, objects: [] })
    expect((await story.canary()).status.trackedConfigs).toEqual({ "configmap/settings": "absent" })
    story.says.checks = [bad]
    await story.world.apply(configMap({ color: "broken" }))
    expect((await untilEnded(story, 1)).phase).toBe("Failed")
    const added = await replaced(story)
    expect(await story.world.list(configMaps)).not.toContainEqual(
      expect.objectContaining({ metadata: expect.objectContaining({ name: readBy(added) }) }),
    )
  })

  test("that must be there and is deleted is no change", async () => {
    const story = await begin(readsMap)
    const before = (await story.canary()).status.trackedConfigs
    await removed(story, configMaps, await story.world.get(configMaps, "settings", "default"))
    await story.world.advance("10m")
    const { history, trackedConfigs } = (await story.canary()).status
    expect([history, trackedConfigs]).toEqual([[], before])
  })

  test("beside a new image is one run, and the pods of before read what they read before", async () => {
    const story = await begin(readsMap)
    await story.setImage(v2)
    await story.world.until("a weight", () => story.weights().includes(34))
    const byRevision = Map.groupBy(await story.pods(), ({ metadata }) => metadata.labels["pod-template-hash"])
    expect(byRevision.size).toBe(2)
    const status = await untilEnded(story, 1)
    expect(status.phase).toBe("Succeeded")
    // Nothing of aim is on the template: its configuration is the one that was promoted.
    expect((await story.deployment()).spec.template.metadata.annotations).toBeUndefined()
    expect(await snapshotsIn(story)).toHaveLength(1)
  })

  test("of a workload that no policy holds starts a run, and both revisions read it", async () => {
    const story = await begin({ ...readsMap, hasPolicy: false })
    await story.world.apply(configMap({ color: "blue" }))
    expect((await untilEnded(story, 1)).phase).toBe("Succeeded")
    expect(await snapshotsIn(story)).toEqual([])
    expect((await story.pods()).map(readBy)).toEqual(["settings", "settings", "settings"])
  })

  for (const kind of ["StatefulSet", "DaemonSet"] as const) {
    test(`of a ${kind} is proven, and its pods read the snapshot`, async () => {
      const story = await begin({ ...readsMap, kind })
      await story.world.apply(configMap({ color: "blue" }))
      expect((await untilEnded(story, 1)).phase).toBe("Succeeded")
      const [snapshot] = await snapshotsIn(story)
      expect(snapshot?.data).toEqual({ color: "blue" })
      expect((await story.pods()).map(readBy)).toEqual(Array(3).fill(snapshot?.metadata.name))
    })

    test(`of a ${kind} that is bad is taken back, and is not tried again`, async () => {
      const story = await begin({ ...readsMap, kind })
      story.says.checks = [bad]
      await story.world.apply(configMap({ color: "broken" }))
      expect((await untilEnded(story, 1)).phase).toBe("Failed")
      await story.world.advance("1h")
      expect(await runsOf(story)).toHaveLength(1)
      const names = new Set((await story.pods()).map(readBy))
      for (const name of names)
        if (name !== "settings")
          expect((await story.world.get(configMaps, name, "default")).data).toEqual({ color: "red" })
    })
  }
})

describe("a Secret", () => {
  test("without the grant is not tracked, and the status says so", async () => {
    const story = await begin(readsSecret)
    await story.world.apply(secret({ key: "dHdv" }))
    await story.world.advance("1h")
    const { phase, untrackedConfigs, trackedConfigs, conditions } = (await story.canary()).status
    expect([phase, untrackedConfigs, trackedConfigs]).toEqual([
      "Initialized",
      [{ name: "secret/key", reason: "ConfigNotTracked" }],
      undefined,
    ])
    expect(conditions).toContainEqual(expect.objectContaining({ type: "Stalled", status: "False" }))
  })

  test("is tracked from its grant on: the grant starts no run, and a change does", async () => {
    const story = await begin(readsSecret)
    await story.world.apply(grant)
    await story.world.settle("1m")
    const { untrackedConfigs, trackedConfigs, history } = (await story.canary()).status
    expect([untrackedConfigs, Object.keys(trackedConfigs), history]).toEqual([undefined, ["secret/key"], []])
    await story.world.apply(secret({ key: "dHdv" }))
    expect((await untilEnded(story, 1)).phase).toBe("Succeeded")
    expect(await story.world.list(secrets)).toHaveLength(1)
  })

  test("that cannot be read counts as it was last known, and a change is found when it can", async () => {
    const story = await canaryStory({ ...readsSecret, objects: [secret({ key: "b25l" }), grant], isAlone: true })
    const { world } = story
    const first = story.run()
    await story.until("Initialized")
    await world.settle("1m")
    const before = (await story.canary()).status.trackedConfigs
    await first.stop()
    let isBroken = true
    const isRead = ({ method, path }: { method: string; path: string }) =>
      isBroken && method === "GET" && path.includes("/secrets")
    story.run({ faults: [answer(isRead, 500)] })
    await world.apply(secret({ key: "dHdv" }))
    await world.advance("10m")
    const { untrackedConfigs, trackedConfigs, history } = (await story.canary()).status
    expect([untrackedConfigs, trackedConfigs, history]).toEqual([
      [{ name: "secret/key", reason: "ConfigUnreadable" }],
      before,
      [],
    ])
    isBroken = false
    const status = await untilEnded(story, 1)
    expect([status.phase, status.untrackedConfigs]).toEqual(["Succeeded", undefined])
  })

  test("that another program renews is followed and not proven", async () => {
    const metadata = {
      name: "key",
      namespace: "default",
      annotations: { "cert-manager.io/certificate-name": "web" },
    }
    const story = await begin({ ...readsSecret, objects: [secret({ key: "b25l" }, { metadata }), grant] })
    await story.world.apply(secret({ key: "dHdv" }, { metadata }))
    await story.world.advance("1h")
    expect((await story.canary()).status.history).toEqual([])
  })

  test("has a checksum that does not give its content away", async () => {
    const story = await begin({ ...readsSecret, objects: [secret({ key: "b25l" }), grant] })
    const twin = await begin({ ...readsSecret, objects: [secret({ key: "b25l" }), grant], seed: 2 })
    const [one, two] = await Promise.all([story, twin].map(async each => (await each.canary()).status.trackedConfigs))
    expect(one["secret/key"]).not.toBe(two["secret/key"])
  })
})

test("a Canary that is deleted leaves pods that can restart, and no snapshot that no pod reads", async () => {
  const story = await begin(readsMap)
  const { world } = story
  await world.apply(configMap({ color: "blue" }))
  await untilEnded(story, 1)
  const uids = uidsOf(await story.pods())
  await story.remove()
  await world.until("the Canary is gone", async () => (await world.list(canaries)).length === 0, "10m")
  await world.settle("2m")
  expect(uidsOf(await story.pods())).toEqual(uids)
  const [snapshot, ...others] = await snapshotsIn(story)
  expect(others).toEqual([])
  const [pod] = await story.pods()
  expect(readBy(pod!)).toBe(snapshot?.metadata.name)
  // It goes with the ReplicaSet.
  const [set] = (await story.sets()).filter(({ spec }) => spec.replicas > 0)
  expect(snapshot?.metadata.ownerReferences).toMatchObject([{ kind: "ReplicaSet", uid: set?.metadata.uid }])
})
