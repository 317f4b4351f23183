import { describe, expect, test } from "vitest"
import { policyManifests } from "#cli/manifests/policies.ts"
import type { Json } from "#cluster-sim/index.ts"
import { grantName } from "#core/grant.ts"
import { heldMark, inPlaceHolder, strategyAnnotation } from "#core/in-place/names.ts"
import { workloadKind } from "#core/workloads/kinds.ts"
import { inPlaceHolds } from "#policies/in-place-hold.ts"
import { type Resource, resourceOf } from "#runtime/resource.ts"
import { scenario } from "#test/support/scenario.ts"

// The policies hold a StatefulSet and a DaemonSet in the write that changes the template, and go on holding it.

const rbac = "rbac.authorization.k8s.io"
const binding = (kind: "RoleBinding" | "ClusterRoleBinding"): Json => ({
  apiVersion: `${rbac}/v1`,
  kind,
  metadata: { name: grantName, ...(kind === "RoleBinding" && { namespace: "default" }) },
  roleRef: { apiGroup: rbac, kind: "ClusterRole", name: grantName },
  subjects: [],
})

const every = 2_147_483_647
type Grants = ("RoleBinding" | "ClusterRoleBinding")[]

/** Writes of one object by many hands. */
async function place(kind: "StatefulSet" | "DaemonSet", updateStrategy: Json | undefined, grants: Grants) {
  const world = await scenario()
  const resource: Resource = resourceOf(workloadKind(kind)!)
  const name = { name: "db", namespace: "default" }
  await world.apply(...(inPlaceHolds.flatMap(policyManifests) as Json[]), ...grants.map(binding))
  const manifest = (image: string, spec: Json = {}): Json => ({
    apiVersion: "apps/v1",
    kind,
    metadata: { ...name, annotations: { [strategyAnnotation]: "InPlaceIfPossible" } },
    spec: {
      selector: { matchLabels: { app: "db" } },
      template: { metadata: { labels: { app: "db" } }, spec: { containers: [{ name: "db", image }] } },
      ...(updateStrategy && { updateStrategy }),
      ...spec,
    },
  })
  const inTime = async <T>(promise: Promise<T>): Promise<T> => {
    let isDone = false
    const end = () => {
      isDone = true
    }
    promise.then(end, end)
    await world.until("it is written", () => isDone)
    return promise
  }
  const { client } = world
  const send = (type: "merge" | "strategic" | "apply" | "json", body: Json, fieldManager: string) =>
    inTime(client.patch<Json>(resource, name, { type, body, force: true } as never, { fieldManager }))
  await inTime(client.create(resource, manifest("db:1") as never, { fieldManager: "kubectl-client-side-apply" }))
  return {
    world,
    manifest,
    send,
    get: (): Promise<Json> => world.get(resource, name.name, name.namespace),
    setImage: (image: string) =>
      send("strategic", { spec: { template: { spec: { containers: [{ name: "db", image }] } } } }, "kubectl-set"),
    put: (object: Json) => inTime(client.replace<Json>(resource, object as never, { fieldManager: "kubectl-replace" })),
    /** As `kubectl apply --server-side` takes over what a client-side apply has written, defaults included. */
    async applyFirst(object: Json) {
      const { metadata } = (await this.get()) as Json
      const managedFields = metadata.managedFields.map((entry: Json) =>
        entry.manager === "kubectl-client-side-apply" ? { ...entry, manager: "kubectl", operation: "Apply" } : entry,
      )
      await send("merge", { metadata: { managedFields } }, "kubectl")
      return send("apply", object, "kubectl")
    },
  }
}
type Place = Awaited<ReturnType<typeof place>>

const originalOf = ({ metadata }: Json) => JSON.parse(metadata.annotations[heldMark]).original
const markOf = ({ metadata }: Json) => [metadata.labels?.[heldMark], metadata.annotations?.[heldMark] !== undefined]

const kinds = {
  StatefulSet: {
    own: { type: "RollingUpdate", rollingUpdate: { partition: 0, maxUnavailable: "25%" } },
    held: { type: "RollingUpdate", rollingUpdate: { partition: every, maxUnavailable: "25%" } },
    usual: { type: "RollingUpdate", rollingUpdate: { partition: 0 } },
    others: { type: "RollingUpdate", rollingUpdate: { partition: 2, maxUnavailable: 3 } },
    heldOthers: { type: "RollingUpdate", rollingUpdate: { partition: every, maxUnavailable: 3 } },
  },
  DaemonSet: {
    own: { type: "RollingUpdate", rollingUpdate: { maxUnavailable: "25%", maxSurge: 0 } },
    held: { type: "OnDelete", rollingUpdate: { maxUnavailable: "25%", maxSurge: 0 } },
    usual: { type: "RollingUpdate", rollingUpdate: { maxUnavailable: 1, maxSurge: 0 } },
    others: { type: "RollingUpdate", rollingUpdate: { maxUnavailable: 3, maxSurge: 0 } },
    heldOthers: { type: "OnDelete", rollingUpdate: { maxUnavailable: 3, maxSurge: 0 } },
  },
} as const

for (const kind of ["StatefulSet", "DaemonSet"] as const)
  for (const grants of [["RoleBinding"], ["RoleBinding", "ClusterRoleBinding"]] satisfies Grants[])
    describe(`a ${kind} with the grants ${grants.join(" and ")}`, () => {
      const { own, held, usual, others, heldOthers } = kinds[kind]

      async function heldPlace(options = { hasOwn: true }): Promise<Place> {
        const here = await place(kind, options.hasOwn ? own : undefined, grants)
        await here.setImage("db:2")
        return here
      }

      /** Held with the same annotation as before, but for what is to be given back. */
      async function expectHeld({ get }: Place, spec: Json = held, original: Json = own) {
        const object = await get()
        expect(object.spec.updateStrategy).toEqual(spec)
        expect(originalOf(object)).toEqual(original)
        expect(JSON.parse(object.metadata.annotations[heldMark])).toMatchObject({ by: inPlaceHolder, generation: 1 })
        expect(markOf(object)).toEqual([inPlaceHolder, true])
      }

      test("is held in the write that changes its template, and its strategy is kept exactly", async () => {
        await expectHeld(await heldPlace())
      })

      test("with the server's own defaults: these are kept", async () => {
        const here = await heldPlace({ hasOwn: false })
        const { spec } = await here.get()
        expect(originalOf(await here.get())).toEqual(usual)
        expect(spec.updateStrategy).toEqual(
          kind === "StatefulSet" ? { ...usual, rollingUpdate: { partition: every } } : { ...usual, type: "OnDelete" },
        )
      })

      test("the first server-side apply after a client-side one does not end it", async () => {
        const here = await heldPlace({ hasOwn: false })
        const before = (await here.get()).spec.updateStrategy
        await here.applyFirst(here.manifest("db:2"))
        await expectHeld(here, before, usual)
        await here.send("apply", here.manifest("db:3"), "kubectl")
        await expectHeld(here, before, usual)
      })

      test("an apply with its own strategy does not end it, again and again", async () => {
        const here = await heldPlace()
        for (const image of ["db:2", "db:2", "db:3"]) {
          await here.send("apply", here.manifest(image), "gitops")
          await expectHeld(here)
        }
      })

      test("a strategy that is written while it is held is what will be given back", async () => {
        const here = await heldPlace()
        await here.send("merge", { spec: { updateStrategy: others } }, "kubectl-edit")
        await expectHeld(here, heldOthers, others)
        await here.setImage("db:3")
        await expectHeld(here, heldOthers, others)
      })

      test("an annotation or label that is taken away alone comes back", async () => {
        const here = await heldPlace()
        const gone = { [heldMark]: null }
        await here.send("merge", { metadata: { annotations: gone } }, "a")
        await expectHeld(here)
        await here.send("merge", { metadata: { labels: gone } }, "a")
        await expectHeld(here)
        await here.send("merge", { metadata: { annotations: gone, labels: gone } }, "a")
        await expectHeld(here)
      })

      test("a replacement by the plain manifest of another image is held too", async () => {
        const here = await heldPlace()
        await here.put(here.manifest("db:3"))
        await expectHeld(here)
      })

      test("an edit as kubectl edit sends it changes nothing of the hold", async () => {
        const here = await heldPlace()
        const object = await here.get()
        object.spec.template.spec.containers[0].image = "db:3"
        await here.put(object)
        await expectHeld(here)
      })

      test("a write that takes hold and annotation away is the release", async () => {
        const here = await heldPlace()
        await here.send(
          "merge",
          { metadata: { annotations: { [heldMark]: null } }, spec: { updateStrategy: own } },
          "a",
        )
        expect((await here.get()).spec.updateStrategy).toEqual(own)
        await here.send("merge", { metadata: { labels: { [heldMark]: null } } }, "a")
        const object = await here.get()
        expect([object.spec.updateStrategy, ...markOf(object)]).toEqual([own, undefined, false])
      })

      test("without the strategy annotation it is not asserted any more", async () => {
        const here = await heldPlace()
        await here.send("merge", { metadata: { annotations: { [strategyAnnotation]: null } } }, "a")
        await here.send("merge", { spec: { updateStrategy: own } }, "a")
        expect((await here.get()).spec.updateStrategy).toEqual(own)
      })

      test("a hold that was lost in between is put back by the next template alone", async () => {
        const here = await heldPlace()
        const optIn = (value: string | null) => ({ metadata: { annotations: { [strategyAnnotation]: value } } })
        await here.send("merge", { ...optIn(null), spec: { updateStrategy: own } }, "a")
        await here.send("merge", optIn("InPlaceOnly"), "a")
        expect((await here.get()).spec.updateStrategy).toEqual(own)
        await here.setImage("db:3")
        await expectHeld(here)
      })

      test("the hold of another part of aim is left alone", async () => {
        const here = await heldPlace()
        const gone = { [heldMark]: null }
        await here.send("merge", { metadata: { annotations: gone }, spec: { updateStrategy: own } }, "a")
        const text = '{"by":"canary","generation":7}'
        await here.send("merge", { metadata: { annotations: { [heldMark]: text } } }, "a")
        await here.setImage("db:3")
        const object = await here.get()
        expect([object.metadata.annotations[heldMark], object.spec.updateStrategy]).toEqual([text, own])
      })
    })

describe("nothing is held", () => {
  const unheld = async ({ get, setImage }: Place, strategy: Json) => {
    await setImage("db:2")
    const object = await get()
    expect([object.spec.updateStrategy, ...markOf(object)]).toEqual([strategy, undefined, false])
  }
  const onDelete = { type: "OnDelete" }
  const partition = { type: "RollingUpdate", rollingUpdate: { partition: 2 } }

  test("of a StatefulSet whose owner has partitioned it", async () => {
    await unheld(await place("StatefulSet", partition, ["RoleBinding"]), partition)
  })
  for (const kind of ["StatefulSet", "DaemonSet"] as const) {
    test(`of a ${kind} whose owner has written OnDelete`, async () => {
      await unheld(await place(kind, onDelete, ["RoleBinding"]), onDelete)
    })
    test(`of a ${kind} without a grant`, async () => {
      await unheld(await place(kind, kinds[kind].own, []), kinds[kind].own)
    })
  }

  test("by a write that is no change of the template", async () => {
    const here = await place("StatefulSet", undefined, ["RoleBinding"])
    await here.send("merge", { spec: { replicas: 3 } }, "a")
    expect(markOf(await here.get())).toEqual([undefined, false])
  })
})

test("OnDelete that is written while a StatefulSet is held is given back", async () => {
  const here = await place("StatefulSet", undefined, ["RoleBinding", "ClusterRoleBinding"])
  await here.setImage("db:2")
  for (const image of ["db:2", "db:3"]) {
    await here.send("merge", { spec: { updateStrategy: { type: "OnDelete", rollingUpdate: null } } }, "a")
    await here.setImage(image)
    const object = await here.get()
    expect(originalOf(object)).toEqual({ type: "OnDelete" })
    expect(object.spec.updateStrategy).toEqual({ type: "RollingUpdate", rollingUpdate: { partition: every } })
  }
})

test("a block that the server would refuse at the release of a DaemonSet is not kept", async () => {
  const { own } = kinds.DaemonSet
  const here = await place("DaemonSet", own, ["RoleBinding", "ClusterRoleBinding"])
  await here.setImage("db:2")
  const refused = [
    { maxSurge: 1 },
    { maxUnavailable: 0, maxSurge: 0 },
    { maxUnavailable: "1" },
    { maxUnavailable: "150%" },
    { maxUnavailable: -1 },
    { maxUnavailable: "00%" },
  ]
  for (const rollingUpdate of refused) {
    await here.send("merge", { spec: { updateStrategy: { rollingUpdate } } }, "a")
    expect(originalOf(await here.get())).toEqual(own)
  }
  const wanted = { maxUnavailable: 0, maxSurge: 2 }
  await here.send("merge", { spec: { updateStrategy: { rollingUpdate: wanted } } }, "a")
  expect(originalOf(await here.get())).toEqual({ ...own, rollingUpdate: wanted })
})

for (const maxUnavailable of ["1", "150%", 0])
  test(`a DaemonSet that gets its new image together with maxUnavailable ${JSON.stringify(maxUnavailable)} is refused, and not held`, async () => {
    const { own } = kinds.DaemonSet
    const here = await place("DaemonSet", own, ["RoleBinding"])
    const spec = { ...here.manifest("db:2").spec, updateStrategy: { ...own, rollingUpdate: { maxUnavailable } } }
    await expect(here.send("merge", { spec }, "a")).rejects.toThrow(/maxUnavailable/)
    expect((await here.get()).spec.template.spec.containers[0].image).toBe("db:1")
  })

test("a partition that the server would refuse at the release of a StatefulSet is not kept", async () => {
  const { own, others, heldOthers } = kinds.StatefulSet
  const here = await place("StatefulSet", own, ["RoleBinding", "ClusterRoleBinding"])
  await here.setImage("db:2")
  const write = (rollingUpdate: Json) => here.send("merge", { spec: { updateStrategy: { rollingUpdate } } }, "a")
  await write(others.rollingUpdate)
  await write({ partition: -1 })
  const object = await here.get()
  expect([object.spec.updateStrategy, originalOf(object)]).toEqual([heldOthers, others])
})
