import { group, version } from "../group.ts"

export const containerRecreateRequestNames = {
  group,
  version,
  kind: "ContainerRecreateRequest",
  plural: "containerrecreaterequests",
  scope: "Namespaced",
  shortNames: ["crr"],
} as const
