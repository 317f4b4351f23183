import type { Json } from "#cluster-sim/index.ts"
import { createServiceImageController } from "#controllers/serviceimage/controller.ts"
import { serviceImages } from "#controllers/serviceimage/resources.ts"
import type { Controller } from "#runtime/controller.ts"
import type { Resource } from "#runtime/resource.ts"
import { Dicoms } from "../../examples/dicom/dicom.ts"
import { quickOperator } from "./quick-operator.ts"
import { manifest, type Process, type ProcessOptions, scenario, type World } from "./scenario.ts"

// Short stories of one rollout over a few tenants in virtual time, described by the state of the world: which object has which image, what
// the ServiceImage says, and what was ever committed.

export const image = (tag: string) => `registry.example.com/dicom:${tag}`

export type Tenant = { tier?: string; tag?: string; image?: string; labels?: Json; metadata?: Json; spec?: Json }

export const dicom = (name: string, { tier, tag, labels, metadata, spec, ...more }: Tenant = {}): Json => ({
  apiVersion: "services.example.com/v1alpha1",
  kind: "Dicom",
  metadata: {
    name,
    namespace: "default",
    labels: { ...(tier !== undefined && { "upgrade-tier": tier }), ...labels },
    ...metadata,
  },
  spec: { ...(tag && { image: image(tag) }), ...(more.image && { image: more.image }), ...spec },
})

export const early = (name: string, more: Tenant = {}) => dicom(name, { tier: "early", ...more })

/** Early ones first, then all others. */
export const twoTiers = [
  { upgradeTier: "early", priority: 1 },
  { upgradeTier: "", priority: 0 },
]

export const serviceImage = (spec: Json = {}, name = "dicom"): Json => ({
  apiVersion: "autoimagemanager.io/v1alpha1",
  kind: "ServiceImage",
  metadata: { name },
  spec: {
    target: { apiVersion: "services.example.com/v1alpha1", kind: "Dicom" },
    defaultImage: image("v1"),
    tiers: twoTiers,
    pace: { podsPerSecond: 0 },
    ...spec,
  },
})

/** Both kinds are served, and nothing else is there. */
const empty = await (async () => {
  const world = await scenario()
  await world.apply(manifest("charts/aim/crds/serviceimages.yaml"), manifest("examples/dicom/crd.yaml"))
  return world.cluster.store.dump()
})()

export type Story = {
  world: World
  process: Process
  /** Tags by name. */
  images(): Promise<Record<string, string>>
  /** Every tag that a tenant ever had, in order. */
  imagesOver(name: string): string[]
  status(name?: string): Promise<Json>
  /** Every status that was ever committed. */
  statuses(name?: string): Json[]
  condition(type: string, name?: string): Promise<Json | undefined>
  tier(tier: string): Promise<Json>
  /** Reasons of the events about the ServiceImage, in order. */
  events(): Promise<string[]>
  /** Merges into the spec. */
  change(spec: Json, name?: string): Promise<void>
  tenant(name: string, patch: Json): Promise<void>
  complete(name?: string): Promise<void>
  until(type: string, reason: string, name?: string): Promise<void>
}

export type StoryOptions = {
  spec?: Json
  controllers?: readonly Controller[]
  process?: (world: World) => ProcessOptions
  /** Another world than the empty one. */
  world?: World
  /** Do not wait until all tenants have v1. */
  isUnderWay?: boolean
}

/** These tenants are there, and have been brought to v1. */
export async function tell(tenants: readonly Json[], options: StoryOptions = {}): Promise<Story> {
  const world = options.world ?? (await scenario({ saved: empty }))
  world.run(options.controllers ?? [quickOperator])
  const process = world.run([createServiceImageController()], options.process?.(world))
  const story = about(world, process)
  await world.apply(...tenants, serviceImage(options.spec))
  if (!options.isUnderWay) await story.complete()
  return story
}

export function about(world: World, process: Process): Story {
  const ofKind = ({ plural }: Resource, name: string) =>
    world.history.filter(({ place, object }) => place.endsWith(plural) && object.metadata.name === name)
  const status = async (name = "dicom") => (await world.get(serviceImages, name)).status
  const condition = async (type: string, name?: string) =>
    (await status(name))?.conditions.find((each: Json) => each.type === type)
  return {
    world,
    process,
    images: async () =>
      Object.fromEntries((await world.list(Dicoms)).map(({ metadata, spec }) => [metadata.name, tagOf(spec.image)])),
    imagesOver(name) {
      const tags = ofKind(Dicoms, name).map(({ object }) => tagOf(object.spec.image))
      return tags.filter((tag, index) => tag !== tags[index - 1])
    },
    status,
    statuses: (name = "dicom") =>
      ofKind(serviceImages, name)
        .map(({ object }) => object.status)
        .filter(each => each !== undefined),
    condition,
    tier: async tier => (await status()).tierStatus.find((each: Json) => each.upgradeTier === tier),
    events: async () =>
      (await world.list(eventKind))
        .filter(({ regarding }) => regarding?.kind === "ServiceImage")
        .map(({ reason }) => reason),
    change: (spec, name = "dicom") => world.patch(serviceImages, name, { spec }),
    tenant: (name, patch) => world.patch(Dicoms, name, patch, "default"),
    complete: (name = "dicom") =>
      world.until(`${name} to be complete`, async () => isComplete(await world.get(serviceImages, name)), "6h"),
    until: (type, reason, name) =>
      world.until(`${type} for ${reason}`, async () => (await condition(type, name))?.reason === reason, "6h"),
  }
}

const eventKind: Resource = { group: "events.k8s.io", version: "v1", plural: "events", kind: "Event", namespaced: true }

const tagOf = (text = "") => text.split(":")[1] ?? text

/** As `kubectl wait --for=condition=Complete` has it: said of the present generation. */
const isComplete = ({ metadata, status }: Json): boolean =>
  status?.conditions?.some(
    (each: Json) =>
      each.type === "Complete" && each.status === "True" && each.observedGeneration === metadata.generation,
  ) ?? false
