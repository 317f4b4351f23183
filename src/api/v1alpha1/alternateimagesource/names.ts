import { group, version } from "../group.ts"

export const alternateImageSourceNames = {
  group,
  version,
  kind: "AlternateImageSource",
  plural: "alternateimagesources",
  scope: "Namespaced",
  shortNames: ["ais"],
} as const
