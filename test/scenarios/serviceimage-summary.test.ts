import { expect, test } from "vitest"
import { everyPart, type Json, parseRegistries } from "#cluster-sim/index.ts"
import { createServiceImageController } from "#controllers/serviceimage/controller.ts"
import { serviceImages } from "#controllers/serviceimage/resources.ts"
import { endOfOperation } from "#core/fleet/rollout-state.ts"
import { rolloutOf } from "#operations/rollout.ts"
import { cases } from "#test/support/manifests/serviceimage.ts"
import { manifest, scenario, type World } from "#test/support/scenario.ts"
import { dicomController } from "../../examples/dicom/controller.ts"
import { Dicoms } from "../../examples/dicom/dicom.ts"

// What `kubectl get si` shows of a rollout, in each of its states.

const image = (tag: string) => `registry.example.com/dicom:${tag}`

const dicom = (name: string, tier = ""): Json => ({
  apiVersion: "services.example.com/v1alpha1",
  kind: "Dicom",
  metadata: { name, namespace: "default", labels: { ...(tier && { "upgrade-tier": tier }) } },
  spec: {},
})

const onlyTiers = (tag: string): Json => ({
  apiVersion: "autoimagemanager.io/v1alpha1",
  kind: "ServiceImage",
  metadata: { name: "dicom" },
  spec: {
    target: { apiVersion: "services.example.com/v1alpha1", kind: "Dicom" },
    // As in the original document: no defaultImage, each tier has its own.
    tiers: [
      { upgradeTier: "early", priority: 1, image: image(tag) },
      { upgradeTier: "", priority: 0, image: image("v1") },
    ],
  },
})

async function calm(): Promise<World> {
  const registries = parseRegistries("registries: {registry.example.com: {images: {dicom: {v1: {}, v2: {}}}}}")
  const world = await scenario({ seed: 7, parts: everyPart({ nodes: 3, registries }) })
  await world.apply(manifest("charts/aim/crds/serviceimages.yaml"), manifest("examples/dicom/crd.yaml"))
  world.run([dicomController()])
  world.run([createServiceImageController()])
  await world.apply(dicom("e1", "early"), dicom("d1"), onlyTiers("v1"))
  await world.until("v1 everywhere", async () => (await columns(world)).STATE === "Complete")
  return world
}

/** As the server answers kubectl. */
async function columns(world: World, name = "dicom"): Promise<Record<string, unknown>> {
  const response = await world.cluster.transport.send({
    method: "GET",
    path: `/apis/autoimagemanager.io/v1alpha1/serviceimages/${name}`,
    headers: { accept: "application/json;as=Table;v=v1;g=meta.k8s.io" },
    signal: new AbortController().signal,
  })
  let text = ""
  for await (const bytes of response.body) text += Buffer.from(bytes).toString()
  const { columnDefinitions, rows } = JSON.parse(text)
  return Object.fromEntries(
    columnDefinitions.map(({ name }: Json, index: number) => [name.toUpperCase(), rows[0].cells[index]]),
  )
}

/** Every status that was ever written says in a word what `aim` makes of its conditions. */
function sameWordEverywhere(world: World): void {
  const statuses = world.history
    .map(({ object }: Json) => object)
    .filter(each => each?.kind === "ServiceImage" && each.status?.conditions)
  expect(statuses.length).toBeGreaterThan(2)
  for (const object of statuses) {
    const { state } = rolloutOf(object)
    if (state !== "NotSeenYet") expect(object.status.state).toBe(state)
  }
}

test("a state and an image for each of them, also where only tiers name images", async () => {
  const world = await calm()
  expect(await columns(world)).toMatchObject({ READY: "True", STATE: "Complete", PROGRESS: "2/2", IMAGE: image("v1") })

  await world.patch(serviceImages, "dicom", { spec: { paused: true, tiers: onlyTiers("v2").spec.tiers } })
  await world.until("the pause", async () => (await columns(world)).STATE === "Paused")
  expect(await columns(world)).toMatchObject({ READY: "False", IMAGE: `${image("v2")} +1` })

  await world.patch(serviceImages, "dicom", { spec: { paused: false, tiers: onlyTiers("v3").spec.tiers } })
  await world.until("the rollout", async () => (await columns(world)).STATE === "InProgress")
  await world.until("the halt", async () => (await columns(world)).STATE === "Halted")
  expect(await columns(world)).toMatchObject({ READY: "False", IMAGE: `${image("v3")} +1` })

  const { operation } = (await world.get(serviceImages, "dicom")).status
  await world.patch(serviceImages, "dicom", {
    metadata: { annotations: { "autoimagemanager.io/rollback": operation.id } },
  })
  await world.until("the way back", async () => (await columns(world)).STATE === "RolledBack")
  expect(await columns(world)).toMatchObject({ IMAGE: image("v1") })
  sameWordEverywhere(world)
})

test("the original document's own manifest", async () => {
  const world = await calm()
  const { manifest: original } = cases["the original document's example, with a target"]!
  await world.apply({ ...(original as Json), metadata: { name: "original" } })
  await world.until("it to be looked at", async () => Boolean((await columns(world, "original")).STATE))
  expect((await columns(world, "original")).IMAGE).toMatch(/\S/)
})

test("how long an operation took stays, also when a tier is reopened", async () => {
  const world = await calm()
  const end = async () => endOfOperation((await world.get(serviceImages, "dicom")).status)
  const first = await end()
  expect(first).toBeDefined()
  await world.advance("20m")
  await world.patch(Dicoms, "d1", { spec: { image: image("v2") } }, "default")
  await world.until(
    "it to be put right",
    async () => (await world.get(Dicoms, "d1", "default")).spec.image === image("v1"),
  )
  await world.until("it to be complete again", async () => (await columns(world)).STATE === "Complete")
  expect((await world.get(serviceImages, "dicom")).status.completedAt).not.toBe(first)
  expect(await end()).toBe(first)
})
