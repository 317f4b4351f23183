export { type ConditionType, conditions, type Reason, reasons } from "./reasons.ts"
export {
  type Condition,
  ImageListPullJob,
  type ImageListPullJobSpec,
  type ImageListPullJobStatus,
  maxFailedImages,
} from "./schema.ts"
