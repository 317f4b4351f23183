import { group, version } from "../group.ts"

export const serviceImageNames = {
  group,
  version,
  kind: "ServiceImage",
  plural: "serviceimages",
  scope: "Cluster",
  shortNames: ["si"],
} as const
