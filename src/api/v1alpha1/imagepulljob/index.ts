export { type ConditionType, conditions, type Reason, reasons } from "./reasons.ts"
export {
  type Condition,
  type FailedNode,
  ImagePullJob,
  type ImagePullJobSpec,
  type ImagePullJobStatus,
  maxFailedNodes,
} from "./schema.ts"
