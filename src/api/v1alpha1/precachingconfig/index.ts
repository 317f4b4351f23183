export { type ConditionType, conditions, type Reason, reasons } from "./reasons.ts"
export { PreCachingConfig, type PreCachingConfigSpec } from "./schema.ts"
