import { expect, test } from "vitest"
import { everyPart, type Json, parseRegistries } from "#cluster-sim/index.ts"
import { createServiceImageController } from "#controllers/serviceimage/controller.ts"
import { serviceImages } from "#controllers/serviceimage/resources.ts"
import { core } from "#runtime/resource.ts"
import { manifest, scenario, type World } from "#test/support/scenario.ts"
import { dicomController } from "../../examples/dicom/controller.ts"
import { Dicoms } from "../../examples/dicom/dicom.ts"

// Stories of the whole system in virtual time: pods are scheduled, pull their images, start, and stop.

const pods = core("pods", "Pod")
const image = (tag: string) => `registry.example.com/dicom:${tag}`

const dicom = (name: string, tier = "", spec: Json = {}, labels: Json = {}): Json => ({
  apiVersion: "services.example.com/v1alpha1",
  kind: "Dicom",
  metadata: { name, namespace: "default", labels: { ...(tier && { "upgrade-tier": tier }), ...labels } },
  spec,
})

const serviceImage = (name: string, tag: string, spec: Json = {}): Json => ({
  apiVersion: "autoimagemanager.io/v1alpha1",
  kind: "ServiceImage",
  metadata: { name },
  spec: {
    target: { apiVersion: "services.example.com/v1alpha1", kind: "Dicom", ...spec.target },
    defaultImage: image(tag),
    tiers: [
      { upgradeTier: "early", priority: 1 },
      { upgradeTier: "", priority: 0 },
    ],
    ...spec.more,
  },
})

/** Three nodes, both controllers at work, and four tenants on v1: two early, two not. */
async function calm(registries?: string): Promise<World> {
  const world = await scenario({
    seed: 7,
    parts: everyPart({ nodes: 3, registries: registries ? parseRegistries(registries) : undefined }),
  })
  await world.apply(manifest("charts/aim/crds/serviceimages.yaml"), manifest("examples/dicom/crd.yaml"))
  world.run([dicomController()])
  world.run([createServiceImageController()])
  await world.apply(dicom("e1", "early"), dicom("e2", "early"), dicom("d1"), dicom("d2"), serviceImage("dicom", "v1"))
  await world.until("v1 everywhere", async () => isComplete(await world.get(serviceImages, "dicom")))
  return world
}

const isComplete = ({ metadata, status }: Json) =>
  status?.conditions?.some(
    (each: Json) =>
      each.type === "Complete" && each.status === "True" && each.observedGeneration === metadata.generation,
  ) ?? false
const condition = async (world: World, type: string, name = "dicom") =>
  (await world.get(serviceImages, name)).status.conditions.find((each: Json) => each.type === type)
const images = async (world: World) =>
  Object.fromEntries(
    (await world.list(Dicoms)).map(({ metadata, spec }) => [metadata.name, spec.image?.split(":")[1] ?? ""]),
  )
/** What serves: tenant and tag of every ready pod that is to stay. */
const serving = async (world: World) =>
  (await world.list(pods))
    .filter(
      ({ metadata, status }) =>
        !metadata.deletionTimestamp &&
        status.conditions?.some((each: Json) => each.type === "Ready" && each.status === "True"),
    )
    .map(({ metadata, spec }) => `${metadata.name.split("-")[0]} ${spec.containers[0].image.split(":")[1]}`)
    .sort()
const setImage = (world: World, tag: string) =>
  world.patch(serviceImages, "dicom", { spec: { defaultImage: image(tag) } })

test("an image that crashes stops at the first tier, and all tenants keep serving", async () => {
  const world = await calm(
    `registries: {registry.example.com: {images: {dicom: {v1: {}, v2: {exits: {after: 1s, code: 1}}}}}}`,
  )
  await setImage(world, "v2")
  await world.until("the rollout to halt", async () => (await condition(world, "Halted"))?.status === "True")
  expect(await condition(world, "Halted")).toMatchObject({ reason: "AllFailed" })
  expect(await images(world)).toEqual({ e1: "v2", e2: "v2", d1: "v1", d2: "v1" })
  expect(await serving(world)).toEqual(["d1 v1", "d2 v1", "e1 v1", "e2 v1"])

  await setImage(world, "v1")
  await world.until("all tenants to be back", async () => isComplete(await world.get(serviceImages, "dicom")))
  expect(await images(world)).toEqual({ e1: "v1", e2: "v1", d1: "v1", d2: "v1" })
})

test("a pull that fails for a while only delays: the tier goes on when the registry is back", async () => {
  const world = await calm(
    "registries: {registry.example.com: {images: {dicom: {v1: {}, v2: {fault: {status: 503, for: 4m}}}}}}",
  )
  await setImage(world, "v2")
  await world.advance("3m")
  expect(await images(world)).toEqual({ e1: "v2", e2: "v2", d1: "v1", d2: "v1" })
  expect(await serving(world)).toEqual(["d1 v1", "d2 v1", "e1 v1", "e2 v1"])
  await world.until("v2 everywhere", async () => isComplete(await world.get(serviceImages, "dicom")))
  expect(await serving(world)).toEqual(["d1 v2", "d2 v2", "e1 v2", "e2 v2"])
})

test("a tenant that moves to a tier with another image follows it, and the tier says so", async () => {
  const world = await calm()
  await world.patch(serviceImages, "dicom", {
    spec: {
      tiers: [
        { upgradeTier: "early", priority: 1, image: image("v2") },
        { upgradeTier: "", priority: 0 },
      ],
    },
  })
  await world.until("early on v2", async () => isComplete(await world.get(serviceImages, "dicom")))
  expect(await images(world)).toEqual({ e1: "v2", e2: "v2", d1: "v1", d2: "v1" })
  await world.patch(Dicoms, "d1", { metadata: { labels: { "upgrade-tier": "early" } } }, "default")
  await world.until("d1 on v2", async () => (await images(world)).d1 === "v2")
  await world.until("complete again", async () => isComplete(await world.get(serviceImages, "dicom")))
  expect(await serving(world)).toEqual(["d1 v2", "d2 v1", "e1 v2", "e2 v2"])
})

test("a kind that is installed later is picked up without a restart, and one that goes away is missed", async () => {
  const world = await scenario({ seed: 7, parts: everyPart({ nodes: 1 }) })
  await world.apply(manifest("charts/aim/crds/serviceimages.yaml"))
  world.run([createServiceImageController()])
  await world.apply(serviceImage("dicom", "v1"))
  await world.until(
    "the kind to be missed",
    async () => (await condition(world, "TargetKindMissing"))?.status === "True",
  )
  await world.apply(manifest("examples/dicom/crd.yaml"), dicom("a"))
  await world.until("a to be stamped", async () => (await images(world)).a === "v1")
  expect(await condition(world, "TargetKindMissing")).toBeUndefined()
  const definitions = {
    group: "apiextensions.k8s.io",
    version: "v1",
    plural: "customresourcedefinitions",
    kind: "CustomResourceDefinition",
    namespaced: false,
  }
  await world.client.delete(definitions, { name: "dicoms.services.example.com" })
  await world.until(
    "the kind to be missed again",
    async () => (await condition(world, "TargetKindMissing"))?.status === "True",
  )
})

test("two ServiceImages that select the same tenant do not fight: the older keeps it, the younger says so", async () => {
  const world = await calm()
  await world.advance("2s") // creation times have seconds
  await world.apply(serviceImage("other", "v9"))
  await world.until(
    "the conflict to be told",
    async () => (await condition(world, "Conflict", "other"))?.status === "True",
  )
  const { message } = await condition(world, "Conflict", "other")
  expect(message).toContain("dicom")
  await world.settle()
  expect(await images(world)).toEqual({ e1: "v1", e2: "v1", d1: "v1", d2: "v1" })

  await world.client.delete(serviceImages, { name: "dicom" })
  await world.until("the younger to take over", async () => isComplete(await world.get(serviceImages, "other")))
  expect(await images(world)).toEqual({ e1: "v9", e2: "v9", d1: "v9", d2: "v9" })
})

test("only namespaces that are selected are touched, from the moment they are", async () => {
  const world = await scenario({ seed: 7, parts: everyPart({ nodes: 1 }) })
  await world.apply(manifest("charts/aim/crds/serviceimages.yaml"), manifest("examples/dicom/crd.yaml"))
  world.run([createServiceImageController()])
  await world.apply(dicom("a"))
  await world.apply(serviceImage("dicom", "v1", { target: { namespaceSelector: { matchLabels: { stage: "prod" } } } }))
  await world.advance("1m")
  expect(await images(world)).toEqual({ a: "" })
  await world.patch(core("namespaces", "Namespace", false), "default", { metadata: { labels: { stage: "prod" } } })
  await world.until("a to be stamped", async () => (await images(world)).a === "v1")
})

test("a converged world stays as it is: no write in a day", async () => {
  const world = await calm()
  await world.settle()
  const before = world.history.length
  await world.advance("24h")
  const since = world.history.slice(before).filter(({ place }) => !/leases|events/.test(place))
  expect(since.map(({ place, object }) => `${place} ${object.metadata.name}`)).toEqual([])
})
