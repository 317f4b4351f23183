import { describe, expect, test } from "vitest"
import type { Json } from "#cluster-sim/index.ts"
import { grantName } from "#core/grant.ts"
import { everyOrdinal, heldMark, inPlaceAnnotation, strategyAnnotation } from "#core/in-place/names.ts"
import { workloadKind } from "#core/workloads/kinds.ts"
import { virtualClock } from "#runtime/clock.ts"
import { resourceOf } from "#runtime/resource.ts"
import { storedWorld } from "../test-store.ts"
import { run } from "./hold.ts"
import { run as release } from "./release.ts"

const statuses: Record<string, Json> = {
  Deployment: { replicas: 1, updatedReplicas: 1, availableReplicas: 1, readyReplicas: 1 },
  StatefulSet: {
    ...{ replicas: 1, updatedReplicas: 1, availableReplicas: 1, readyReplicas: 1 },
    ...{ currentRevision: "a", updateRevision: "a" },
  },
  DaemonSet: {
    ...{ desiredNumberScheduled: 1, currentNumberScheduled: 1, updatedNumberScheduled: 1 },
    ...{ numberAvailable: 1, numberReady: 1 },
  },
}

const workload = (kind: string, { annotations = {}, spec = {}, status = {} }: Json = {}): Json => ({
  ...{ apiVersion: "apps/v1", kind },
  metadata: {
    ...{ name: "web", namespace: "shop", generation: 3 },
    annotations: { [strategyAnnotation]: "InPlaceIfPossible", ...annotations },
  },
  spec: {
    ...(kind !== "DaemonSet" && { replicas: 1 }),
    selector: { matchLabels: { app: "web" } },
    template: { metadata: { labels: { app: "web" } }, spec: { containers: [{ name: "app", image: "shop/web:1" }] } },
    ...spec,
  },
  status: { observedGeneration: 3, ...statuses[kind], ...status },
})
const grant: Json = {
  ...{ apiVersion: "rbac.authorization.k8s.io/v1", kind: "RoleBinding" },
  metadata: { name: grantName, namespace: "shop" },
  roleRef: { apiGroup: "rbac.authorization.k8s.io", kind: "ClusterRole", name: grantName },
}
const world = (...objects: Json[]) =>
  storedWorld(virtualClock(0), { apiVersion: "v1", kind: "Namespace", metadata: { name: "shop" } }, ...objects)
type World = Awaited<ReturnType<typeof world>>
const ask = ({ world }: World, words: string[], options: Record<string, unknown> = {}, command = run) =>
  command({ arguments: words, options: { namespace: "shop", ...options } }, world)
const read = (here: World, kind: string): Promise<Json> =>
  here.client.get(resourceOf(workloadKind(kind)!), { name: "web", namespace: "shop" })

describe("hold", () => {
  const stops: Record<string, { word: string; spec: Json }> = {
    Deployment: { word: "deploy", spec: { paused: true } },
    StatefulSet: { word: "sts", spec: { updateStrategy: { rollingUpdate: { partition: everyOrdinal } } } },
    DaemonSet: { word: "ds", spec: { updateStrategy: { type: "OnDelete" } } },
  }
  for (const [kind, { word, spec }] of Object.entries(stops))
    test(`stops a ${kind}, says what differs, and release gives everything back`, async () => {
      const here = await world(workload(kind), grant)
      const before = await read(here, kind)
      const { text, next } = await ask(here, [`${word}/web`])
      expect(text).toBe(`${word}/web of namespace shop is held, also between updates\n`)
      expect(next).toContain(`A ${kind} `)
      const held = await read(here, kind)
      expect(held.spec).toMatchObject(spec)
      expect(held.metadata.labels).toEqual({ [heldMark]: "in-place" })
      expect(JSON.parse(held.metadata.annotations[heldMark])).toMatchObject({ by: "in-place", isStanding: true })
      expect((await ask(here, [`${word}/web`])).text).toContain("is held already")
      await ask(here, [`${word}/web`], {}, release)
      const after = await read(here, kind)
      expect(after.spec.paused ?? false).toBe(false)
      expect(after.spec.updateStrategy?.type ?? "RollingUpdate").toBe("RollingUpdate")
      expect(after.spec.updateStrategy?.rollingUpdate?.partition ?? 0).toBe(0)
      expect(after.spec.template).toEqual(before.spec.template)
      expect(after.metadata.annotations[heldMark]).toBeUndefined()
    })

  test("keeps the note of an earlier update, and says on it that the hold has stayed", async () => {
    const note = JSON.stringify({ operation: "1-x", reason: "Completed", message: "", touched: {}, from: {}, to: {} })
    const here = await world(workload("Deployment", { annotations: { [inPlaceAnnotation]: note } }), grant)
    await ask(here, ["deploy/web"])
    const { metadata } = await read(here, "Deployment")
    expect(JSON.parse(metadata.annotations[inPlaceAnnotation])).toMatchObject({ operation: "1-x", isStanding: true })
    await ask(here, ["deploy/web"], {}, release)
    const released = JSON.parse((await read(here, "Deployment")).metadata.annotations[inPlaceAnnotation])
    expect([released.reason, released.isStanding]).toEqual(["Released", undefined])
  })

  test("writes nothing with --dry-run", async () => {
    const here = await world(workload("Deployment"), grant)
    expect((await ask(here, ["deploy/web"], { dryRun: true })).text).toContain("would be held")
    expect((await read(here, "Deployment")).spec.paused).toBeUndefined()
  })

  const refusals: Record<string, { objects: Json[]; says: string }> = {
    "a workload that has not asked": {
      objects: [workload("Deployment", { annotations: { [strategyAnnotation]: "Recreate" } }), grant],
      says: `asks for no updates in place: kubectl annotate deploy/web -n shop ${strategyAnnotation}=InPlaceIfPossible`,
    },
    "a pause of its owner": {
      objects: [workload("Deployment", { spec: { paused: true } }), grant],
      says: "is stopped by its owner",
    },
    "a rollout that is under way": {
      objects: [workload("Deployment", { status: { updatedReplicas: 0 } }), grant],
      says: "has a rollout under way: aim wait deploy/web -n shop",
    },
    "a namespace without a grant": { objects: [workload("Deployment")], says: "aim grant shop" },
  }
  for (const [name, { objects, says }] of Object.entries(refusals))
    test(`refuses ${name}`, async () => {
      await expect(ask(await world(...objects), ["deploy/web"])).rejects.toThrow(says)
    })
})
