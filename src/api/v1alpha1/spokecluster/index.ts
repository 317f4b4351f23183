export { type ConditionType, conditions, type Reason, reasons } from "./reasons.ts"
export { SpokeCluster, type SpokeClusterSpec, type SpokeClusterStatus } from "./schema.ts"
