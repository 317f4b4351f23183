import { group, version } from "../group.ts"

export const nodeImageNames = {
  group,
  version,
  kind: "NodeImage",
  plural: "nodeimages",
  scope: "Cluster",
  shortNames: ["nimg"],
} as const
