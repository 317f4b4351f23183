import { describe, expect, test } from "vitest"
import type { Answer, DeliveredObject, Observation } from "#core/cluster-fleet/transport.ts"
import { openOcm } from "#test/support/transport/ocm.ts"
import { deliveryOf, transportSuite } from "#test/support/transport/suite.ts"
import { manifestWorks } from "./work.ts"

transportSuite({ open: async () => (await openOcm()).world })

const web: DeliveredObject = {
  manifest: {
    apiVersion: "autoimagemanager.io/v1alpha1",
    kind: "AlternateImageSource",
    metadata: { name: "web", namespace: "default" },
    spec: { equivalentRepositories: ["registry.example.com/web", "mirror.example.com/web"] },
  },
  lifetime: "Kept",
  judge: { by: "Ready", expects: [] },
}
const note: DeliveredObject = {
  manifest: { apiVersion: "v1", kind: "ConfigMap", metadata: { name: "note", namespace: "default" }, data: { a: "1" } },
  lifetime: "Removed",
  judge: { by: "Presence" },
}
const plain = deliveryOf([web])
const workRef = { name: "aim-run-one", namespace: "north" }

type Opened = Awaited<ReturnType<typeof openOcm>>
const firstOf = (answer: Answer<Observation>) => (answer.ok ? answer.value.objects[0] : undefined)

async function eventually(opened: Opened, isSo: () => Promise<boolean>) {
  for (let tries = 0; tries < 100; tries++) {
    if (await isSo()) return
    await opened.world.pass()
  }
  throw new Error("never so")
}
const applied = async (opened: Opened, delivery = plain) => {
  await opened.world.transport.apply("north", delivery)
  await eventually(
    opened,
    async () => firstOf(await opened.world.transport.observe("north", delivery))?.is === "Present",
  )
}
const workOf = ({ hub }: Opened) =>
  hub.get<never>(manifestWorks, workRef).catch(() => undefined) as Promise<
    | { metadata: { generation: number; deletionTimestamp?: string }; spec: Record<string, unknown>; status: never }
    | undefined
  >

async function within(run: (opened: Opened) => Promise<void>) {
  const opened = await openOcm()
  try {
    await run(opened)
  } finally {
    await opened.world.close()
  }
}

describe("a work", () => {
  test("that only keeps is orphaned, that only helps is deleted with its objects, and a mixed one does both", () =>
    within(async opened => {
      for (const [objects, policy] of [
        [[web], "Orphan"],
        [[note], "Foreground"],
        [[web, note], "SelectivelyOrphan"],
      ] as const) {
        await opened.world.transport.apply("north", deliveryOf(objects))
        expect((await workOf(opened))?.spec).toMatchObject({
          deleteOption: { propagationPolicy: policy },
          executor: { subject: { serviceAccount: { namespace: "aim-hub", name: "aim-executor" } } },
        })
      }
    }))

  test("whose account may not write a kind is refused, and is applied when it may", () =>
    within(async opened => {
      await opened.allowExecutor(["configmaps"])
      await opened.world.transport.apply("north", plain)
      await eventually(
        opened,
        async () => firstOf(await opened.world.transport.observe("north", plain))?.is === "Refused",
      )
      const seen = firstOf(await opened.world.transport.observe("north", plain))
      expect(seen).toMatchObject({ reason: "Forbidden", message: expect.stringContaining("not allowed to apply") })
      expect(await opened.world.spoke.read(web.manifest)).toBeUndefined()
      await opened.allowExecutor(["*"])
      opened.restartAgent()
      await eventually(
        opened,
        async () => firstOf(await opened.world.transport.observe("north", plain))?.is === "Present",
      )
    }))

  test("that was refused is not said to be refused with its next content before the agent has seen that", () =>
    within(async opened => {
      await opened.allowExecutor(["configmaps"])
      const isRefused = async () => firstOf(await opened.world.transport.observe("north", plain))?.is === "Refused"
      await opened.world.transport.apply("north", plain)
      await eventually(opened, isRefused)
      await opened.world.setAway(true)
      const next = deliveryOf([web], { run: "run-2" })
      await opened.world.transport.apply("north", next)
      expect(firstOf(await opened.world.transport.observe("north", next))).toMatchObject({ is: "Unknown" })
    }))

  test("with helpers needs the right to delete, and one that only keeps does not", () =>
    within(async opened => {
      await opened.allowExecutor(["*"], ["create", "update", "patch", "get"])
      await applied(opened)
      const other = deliveryOf([note], { bundle: "other" })
      await opened.world.transport.apply("north", other)
      await eventually(
        opened,
        async () => firstOf(await opened.world.transport.observe("north", other))?.is === "Refused",
      )
    }))

  test("that no agent has seen is gone at once, and nothing reaches the cluster", () =>
    within(async opened => {
      await opened.world.setAway(true)
      await opened.world.transport.apply("north", plain)
      await opened.world.transport.remove("north", plain)
      await opened.world.pass()
      expect(await opened.world.transport.remove("north", plain)).toMatchObject({ value: { is: "Gone" } })
      await opened.world.setAway(false)
      await opened.world.pass()
      expect(await opened.world.spoke.read(web.manifest)).toBeUndefined()
    }))

  test("that is being deleted takes no change, and none arrives when the agent is back", () =>
    within(async opened => {
      await applied(opened)
      await opened.world.setAway(true)
      await opened.world.transport.remove("north", plain)
      await opened.world.pass()
      const next = deliveryOf([web], { run: "run-2" })
      expect(await opened.world.transport.apply("north", next)).toMatchObject({ trouble: { is: "Conflict" } })
      expect(await opened.world.transport.observe("north", plain)).toMatchObject({ value: { bundle: "Leaving" } })
      await opened.world.setAway(false)
      await eventually(opened, async () => (await workOf(opened)) === undefined)
      const seen = await opened.world.spoke.read(web.manifest)
      expect(seen?.metadata.annotations?.["autoimagemanager.io/run"]).toBe("run-1")
    }))

  test("is looked at by its content: Applied of new content beside the report of earlier content is nothing", () =>
    within(async opened => {
      const { transport, spoke } = opened.world
      await applied(opened)
      const generation = (await spoke.read(web.manifest))?.metadata.generation ?? 0
      const condition = { type: "Ready", status: "True", reason: "Ready", message: "", observedGeneration: generation }
      await spoke.status(web.manifest, { observedGeneration: generation, conditions: [condition] })
      const isSettled = async (delivery = plain) => {
        const seen = firstOf(await transport.observe("north", delivery))
        return seen?.is === "Present" && seen.verdict.is === "Settled"
      }
      await eventually(opened, () => isSettled())
      const next = deliveryOf([web], { run: "run-2" })
      await transport.apply("north", next)
      // Every state of the work on the way, not only those between two looks of the agent.
      const states: string[] = []
      const end = transport.subscribe("north", () => {
        void transport.observe("north", next).then(answer => states.push(JSON.stringify(firstOf(answer))))
      })
      await eventually(opened, () => isSettled(next))
      end()
      const isOfRun = (await spoke.read(web.manifest))?.metadata.annotations?.["autoimagemanager.io/run"]
      expect(isOfRun).toBe("run-2")
      expect(states.some(each => each.includes("Unknown"))).toBe(true)
    }))

  test("survives a restart of the agent, which finds what it applied and removes it", () =>
    within(async opened => {
      const both = deliveryOf([web, note])
      await applied(opened, both)
      opened.restartAgent()
      await opened.world.transport.remove("north", both)
      await eventually(opened, async () => (await workOf(opened)) === undefined)
      expect(await opened.world.spoke.read(note.manifest)).toBeUndefined()
      expect(await opened.world.spoke.read(web.manifest)).toBeDefined()
    }))

  test("is applied again by the agent after an edit that left its fields alone", () =>
    within(async opened => {
      await applied(opened)
      await opened.world.spoke.delete(web.manifest)
      await opened.clock.advance(310_000)
      await eventually(opened, async () => (await opened.world.spoke.read(web.manifest)) !== undefined)
    }))
})

describe("an agent that is not honest", () => {
  test("and rewrites its work is contested, and is given back what was sent when that is applied again", () =>
    within(async opened => {
      await applied(opened)
      await opened.forge({ spec: { workload: { manifests: [note.manifest] } } })
      await opened.world.pass()
      expect(firstOf(await opened.world.transport.observe("north", plain))).toMatchObject({ is: "Contested" })
      await opened.world.transport.apply("north", plain)
      expect((await workOf(opened))?.spec).toMatchObject({
        workload: { manifests: [{ kind: "AlternateImageSource" }] },
      })
    }))

  test("and takes the executor out of its work is contested", () =>
    within(async opened => {
      await applied(opened)
      await opened.forge({ spec: { executor: null } })
      await opened.world.pass()
      expect(firstOf(await opened.world.transport.observe("north", plain))).toMatchObject({ is: "Contested" })
    }))

  test("and takes labels and annotations away hides nothing", () =>
    within(async opened => {
      await applied(opened)
      await opened.forge({ metadata: { annotations: null, labels: null } })
      await opened.world.pass()
      expect(firstOf(await opened.world.transport.observe("north", plain))?.is).toBe("Present")
      expect(await opened.world.transport.apply("north", { ...plain, fence: "b" })).toMatchObject({ ok: true })
    }))

  test("and reports whatever it likes is bounded", () =>
    within(async opened => {
      await applied(opened)
      await opened.world.setAway(true)
      const { generation } = (await workOf(opened))?.metadata ?? { generation: 0 }
      const condition = (type: string, status: string, message: string) => ({
        ...{
          type,
          status,
          message,
          reason: "x",
          observedGeneration: generation,
          lastTransitionTime: "2026-01-01T00:00:00Z",
        },
      })
      const resourceMeta = {
        ...{ ordinal: 0, group: "autoimagemanager.io", version: "v1alpha1", kind: "AlternateImageSource" },
        ...{ resource: "alternateimagesources", name: "web", namespace: "default" },
      }
      const values = Array.from({ length: 500 }, (_, at) => ({
        ...{ name: at === 0 ? "__proto__" : `f${at}`, fieldValue: { type: "String", string: "y".repeat(5_000) } },
      }))
      const manifests = [
        {
          resourceMeta,
          conditions: [
            condition("Applied", "True", ""),
            condition("Available", "True", ""),
            condition("AimSettled", "False", `Stalled\n${"r".repeat(5_000)}\n\u001b[2J${"m".repeat(30_000)}`),
          ],
          statusFeedback: { values },
        },
        ...Array.from({ length: 300 }, (_, at) => ({
          resourceMeta: { ...resourceMeta, name: `n${at}` },
          conditions: 7,
        })),
      ]
      await opened.forge({ status: { resourceStatus: { manifests } } }, "status")
      await opened.world.pass()
      const seen = firstOf(await opened.world.transport.observe("north", plain))
      const said = JSON.stringify(seen)
      expect(said.length).toBeLessThan(2_000)
      expect(said).not.toContain("\\u001b")
      expect(seen).toMatchObject({ is: "Present", verdict: { is: "Stalled" }, fields: {} })
    }))

  test("and makes its status a heap of wrong types is read as nothing", () =>
    within(async opened => {
      await applied(opened)
      await opened.world.setAway(true)
      for (const status of [
        { resourceStatus: { manifests: { a: 1 } } },
        { resourceStatus: { manifests: [null, 7, "x", { resourceMeta: 7, conditions: [null, 7] }] } },
        { resourceStatus: null, conditions: "x" },
      ]) {
        await opened.forge({ status }, "status")
        await opened.world.pass()
        expect(firstOf(await opened.world.transport.observe("north", plain))).toMatchObject({ is: "Unknown" })
      }
    }))
})
