import type { Json } from "#cluster-sim/index.ts"
import { core } from "#runtime/resource.ts"
import { Dicoms } from "../../../examples/dicom/dicom.ts"
import { serviceImages } from "../kinds.ts"
import type { Stage } from "./story.ts"

/** The fleet that the stories are about: tenants of the kind Dicom, and one ServiceImage over all of them. */

export { default as dicomDefinition } from "../../../examples/dicom/crd.generated.json" with { type: "json" }

export const imageOf = (tag: string) => `registry.example.com/dicom-service:${tag}`

export const serviceImage = (spec: Json) => ({
  apiVersion: "autoimagemanager.io/v1alpha1",
  kind: "ServiceImage",
  metadata: { name: "dicom" },
  spec: { target: { apiVersion: "services.example.com/v1alpha1", kind: "Dicom" }, ...spec },
})

export const tenant = (name: string, upgradeTier: string, spec: Json = {}) => ({
  apiVersion: "services.example.com/v1alpha1",
  kind: "Dicom",
  metadata: { name, namespace: "default", ...(upgradeTier && { labels: { "upgrade-tier": upgradeTier } }) },
  spec,
})

/** As `kubectl patch si/dicom` would. */
export const change = ({ world }: Stage, body: Json) =>
  world.client.patch(serviceImages, { name: "dicom" }, { type: "merge", body })

export const tenants = async ({ world }: Stage, labelSelector?: string): Promise<Json[]> =>
  (await world.client.list(Dicoms, labelSelector === undefined ? {} : { labelSelector })).items as Json[]

/** Names of the tenants that have the image, sorted. */
export const withImage = (all: readonly Json[], image: string): string[] =>
  all
    .filter(({ spec }) => spec.image === image)
    .map(({ metadata }) => metadata.name)
    .sort()

const pods = core("pods", "Pod")

/** Pods whose name begins with a tenant's. */
export const podsOf = async ({ world }: Stage, name: string): Promise<Json[]> =>
  ((await world.client.list(pods, { namespace: "default" })).items as Json[]).filter(({ metadata }) =>
    metadata.name.startsWith(`${name}-`),
  )

const has = (type: string) => (object: Json) =>
  object.status?.conditions?.some(
    (each: Json) =>
      each.type === type && each.status === "True" && each.observedGeneration === object.metadata.generation,
  ) ?? false
export const isComplete = has("Complete")
export const isHalted = has("Halted")
