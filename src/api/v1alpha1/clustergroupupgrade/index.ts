export {
  maxCause,
  maxClusters,
  maxHistory,
  maxInflight,
  maxListed,
  maxListedImages,
} from "./bounds.ts"
export { type ConditionType, conditions, type Phase, phases, type Reason, reasons } from "./reasons.ts"
export {
  ClusterGroupUpgrade,
  type ClusterGroupUpgradeSpec,
  type ClusterGroupUpgradeSpecInput,
  type ClusterGroupUpgradeStatus,
  type Condition,
  type Forecast,
  type Operation,
  type Upgrade,
  type UpgradeManifest,
  type Window,
  type Windows,
} from "./schema.ts"
