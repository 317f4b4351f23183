export { type ConditionType, conditions, type Reason, reasons } from "./reasons.ts"
export {
  type ImageTag,
  NodeImage,
  type NodeImageSpec,
  type NodeImageStatus,
  type TagStatus,
} from "./schema.ts"
