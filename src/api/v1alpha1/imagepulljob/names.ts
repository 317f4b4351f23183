import { group, version } from "../group.ts"

export const imagePullJobNames = {
  group,
  version,
  kind: "ImagePullJob",
  plural: "imagepulljobs",
  scope: "Namespaced",
  shortNames: ["ipj"],
} as const
