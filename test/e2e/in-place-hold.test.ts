import { mkdtempSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from "vitest"
import { policyManifests } from "#cli/manifests/policies.ts"
import { grantName } from "#core/grant.ts"
import { heldMark, inPlaceHolder, strategyAnnotation } from "#core/in-place/names.ts"
import { workloadKind } from "#core/workloads/kinds.ts"
import { inPlaceHolds } from "#policies/in-place-hold.ts"
import { endAtOnce, floor, type Json, onKwok, uniqueNamespace, until } from "#test/support/floor.ts"

// The policies on a real server, with a real kubectl and the native controllers: whatever writes a held StatefulSet or
// DaemonSet, no pod is replaced before the release.

const manifests = inPlaceHolds.flatMap(policyManifests) as Json[]
const pathOf = ({ kind, metadata }: Json) =>
  `/apis/admissionregistration.k8s.io/v1/${kind.toLowerCase().replace(/y$/, "ie")}s/${metadata.name}`

beforeAll(async () => {
  for (const manifest of manifests) await floor().api.apply(pathOf(manifest), manifest)
})
afterAll(async () => {
  for (const manifest of manifests.toReversed()) await floor().api.remove(pathOf(manifest))
})

const every = 2_147_483_647
const kinds = {
  StatefulSet: {
    usual: { type: "RollingUpdate", rollingUpdate: { partition: 0 } },
    // This server drops maxUnavailable, which is behind a feature gate.
    own: { type: "RollingUpdate", rollingUpdate: { partition: 0 } },
    hold: ({ rollingUpdate }: Json) => ({
      type: "RollingUpdate",
      rollingUpdate: { ...rollingUpdate, partition: every },
    }),
  },
  DaemonSet: {
    usual: { type: "RollingUpdate", rollingUpdate: { maxUnavailable: 1, maxSurge: 0 } },
    own: { type: "RollingUpdate", rollingUpdate: { maxUnavailable: "50%", maxSurge: 0 } },
    hold: (strategy: Json) => ({ ...strategy, type: "OnDelete" }),
  },
} as const
type Kind = keyof typeof kinds

/** A workload that was made by `kubectl apply`, with pods that are ready, in a namespace that has granted. */
async function begin(kind: Kind, { strategy, how = [] }: { strategy?: Json; how?: string[] } = {}) {
  const { api, kubectlRun } = floor()
  const namespace = await uniqueNamespace()
  await api.create(`/apis/rbac.authorization.k8s.io/v1/namespaces/${namespace}/rolebindings`, {
    metadata: { name: grantName },
    roleRef: { apiGroup: "rbac.authorization.k8s.io", kind: "ClusterRole", name: "view" },
    subjects: [],
  })
  const folder = mkdtempSync(join(tmpdir(), "aim-hold-"))
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }))
  const file = join(folder, "manifest.json")
  const kubectl = (...args: string[]) => kubectlRun("-n", namespace, ...args)
  const manifest = (image: string): Json => ({
    apiVersion: "apps/v1",
    kind,
    metadata: { name: "db", annotations: { [strategyAnnotation]: "InPlaceIfPossible" } },
    spec: {
      ...(kind === "StatefulSet" && { replicas: 2, serviceName: "db" }),
      selector: { matchLabels: { app: "db" } },
      template: {
        metadata: { labels: { app: "db" } },
        spec: { ...onKwok, ...endAtOnce, containers: [{ name: "db", image }] },
      },
      ...(strategy && { updateStrategy: strategy }),
    },
  })
  const of = (object: Json) => {
    writeFileSync(file, JSON.stringify(object))
    return file
  }
  const path = `/apis/apps/v1/namespaces/${namespace}/${workloadKind(kind)!.plural}/db`
  const here = {
    kubectl,
    manifest,
    title: `${kind.toLowerCase()}/db`,
    get: (): Promise<Json> => api.get(path),
    apply: (image: string, ...how: string[]) => kubectl("apply", ...how, "-f", of(manifest(image))),
    replace: (object: Json) => kubectl("replace", "-f", of(object)),
    async uids(): Promise<string[]> {
      const { items } = await api.get(`/api/v1/namespaces/${namespace}/pods?labelSelector=app=db`)
      return items.map(({ metadata }: Json) => metadata.uid).sort()
    },
  }
  await here.apply("db:1", ...how)
  await until("all pods are ready", async () => isReady(await here.get()))
  // A policy is in force some time after it was created: tried with changes that a server only pretends to make.
  await until("the policy is in force", async () =>
    (await kubectl("set", "image", here.title, "db=db:9", "--dry-run=server", "-o", "json")).includes(heldMark),
  )
  return here
}
type Here = Awaited<ReturnType<typeof begin>>

const isReady = ({ metadata, spec, status = {} }: Json) => {
  const wanted = spec.replicas ?? status.desiredNumberScheduled
  return (
    status.observedGeneration === metadata.generation &&
    wanted > 0 &&
    (status.readyReplicas ?? status.numberReady) === wanted
  )
}

/** Held, with the image and what is to be given back, and seen so by its controller, which has replaced nothing. */
async function expectHeld(
  here: Here,
  kind: Kind,
  { image, original }: { image: string; original: Json },
  uids: string[],
) {
  const object = await until("its controller has seen it", async () => {
    const object = await here.get()
    return object.status.observedGeneration === object.metadata.generation && object
  })
  expect(object.spec.template.spec.containers[0].image).toBe(image)
  expect(object.spec.updateStrategy).toEqual(kinds[kind].hold(original))
  expect(object.metadata.labels).toMatchObject({ [heldMark]: inPlaceHolder })
  expect(JSON.parse(object.metadata.annotations[heldMark])).toEqual({
    by: inPlaceHolder,
    original,
    generation: 1,
  })
  expect(await here.uids()).toEqual(uids)
}

for (const kind of ["StatefulSet", "DaemonSet"] as const)
  describe(`a ${kind}`, () => {
    const { usual, own } = kinds[kind]
    const serverSide = "--server-side"
    const forced = [serverSide, "--force-conflicts"]
    const stories: Record<string, { strategy?: Json; how?: string[]; writes: string[][] }> = {
      "client-side applies": { writes: [[], []] },
      "client-side applies with its own strategy": { strategy: own, writes: [[], [], []] },
      "server-side applies": { how: [serverSide], writes: [[serverSide], [serverSide]] },
      "server-side applies with its own strategy": {
        strategy: own,
        how: [serverSide],
        writes: [forced, forced, forced],
      },
      "a server-side apply after client-side ones, and back": { writes: [[], [serverSide], [serverSide], []] },
      "both mixed, with its own strategy": { strategy: own, writes: [[], forced, [], forced] },
    }
    for (const [name, { strategy, how, writes }] of Object.entries(stories))
      test(`${name}: held with each, and no pod is replaced`, async () => {
        const here = await begin(kind, { ...(strategy && { strategy }), ...(how && { how }) })
        const uids = await here.uids()
        const original = strategy ?? usual
        let image = "db:1"
        for (const [index, how] of writes.entries()) {
          // First without a change of the template.
          if (index > 0) {
            await here.apply(image, ...how)
            await expectHeld(here, kind, { image, original }, uids)
          }
          image = `db:${index + 2}`
          await here.apply(image, ...how)
          await expectHeld(here, kind, { image, original }, uids)
        }
      })

    test("set image, undo, replace and patches: held with each; one write releases, and the pods are replaced", async () => {
      const here = await begin(kind, { strategy: own })
      const { kubectl, title } = here
      const uids = await here.uids()
      const held = (image: string, original: Json = own) => expectHeld(here, kind, { image, original }, uids)
      await kubectl("set", "image", title, "db=db:2")
      await held("db:2")
      await kubectl("rollout", "undo", title)
      await held("db:1")
      await here.replace(here.manifest("db:3"))
      await held("db:3")
      const edited = await here.get()
      // Its controller may write its status in between.
      delete edited.metadata.resourceVersion
      edited.spec.template.spec.containers[0].image = "db:4"
      await here.replace(edited)
      await held("db:4")
      // The hold taken away, without its annotation and with it.
      const patch = (body: Json) => kubectl("patch", title, "--type=merge", "-p", JSON.stringify(body))
      await patch({ spec: { updateStrategy: own } })
      await held("db:4")
      await patch({ metadata: { annotations: { [heldMark]: null }, labels: { [heldMark]: null } } })
      await held("db:4")
      await patch({ metadata: { annotations: { [heldMark]: null } }, spec: { updateStrategy: own } })
      const { spec, metadata } = await here.get()
      expect([spec.updateStrategy, metadata.annotations[heldMark]]).toEqual([own, undefined])
      await until("its controller replaces every pod", async () => {
        const now = await here.uids()
        return now.length === uids.length && !now.some(uid => uids.includes(uid))
      })
    })
  })
