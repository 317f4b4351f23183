import { ServiceImage } from "#api/v1alpha1/serviceimage/index.ts"
import type { ResourceRule } from "./policy.ts"

/** The resulting images, `TIER IMAGE` for each tier (as core/fleet/tiers.ts has them); neither contains a space. */
const imagesOf = (side: string) => {
  const [tiers, defaultImage] = [`variables.${side}Tiers`, `variables.${side}Default`]
  const image = `(tier.?image.orValue('') != '' ? tier.image : ${defaultImage})`
  const hasRest = `${defaultImage} != '' && !${tiers}.exists(tier, tier.?upgradeTier.orValue('') == '')`
  return `${tiers}.map(tier, tier.?upgradeTier.orValue('') + ' ' + ${image}) + (${hasRest} ? [' ' + ${defaultImage}] : [])`
}

/** Variables for the part of an update that changes what is rolled out; other fields only change how and when. */
export const changes = {
  changesTarget: "object.spec.target != oldObject.spec.target",
  oldTiers: "oldObject.spec.?tiers.orValue([])",
  newTiers: "object.spec.?tiers.orValue([])",
  oldDefault: "oldObject.spec.?defaultImage.orValue('')",
  newDefault: "object.spec.?defaultImage.orValue('')",
  oldImages: imagesOf("old"),
  newImages: imagesOf("new"),
  differing: [
    "variables.newImages.filter(entry, !(entry in variables.oldImages))",
    "variables.oldImages.filter(entry, !(entry in variables.newImages))",
  ].join(" + "),
}

/** ServiceImages, and not their status: that is what the controllers write. */
export const serviceImages = (...operations: ResourceRule["operations"]): ResourceRule => ({
  apiGroups: [ServiceImage.group],
  apiVersions: [ServiceImage.version],
  resources: [ServiceImage.plural],
  operations,
  scope: "Cluster",
})
