import { group, version } from "../group.ts"

export const imageListPullJobNames = {
  group,
  version,
  kind: "ImageListPullJob",
  plural: "imagelistpulljobs",
  scope: "Namespaced",
  shortNames: ["ilpj"],
} as const
