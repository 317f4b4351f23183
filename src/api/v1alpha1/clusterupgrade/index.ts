export {
  type ClusterState,
  type ConditionType,
  conditions,
  type PrecacheCause,
  type PrecacheState,
  precacheCauses,
  precacheStates,
  type Reason,
  reasons,
  states,
} from "./reasons.ts"
export {
  ClusterUpgrade,
  type ClusterUpgradeSpec,
  type ClusterUpgradeStatus,
  type Condition,
  type Precache,
} from "./schema.ts"
