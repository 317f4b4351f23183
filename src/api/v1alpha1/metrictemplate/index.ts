export { type ConditionType, conditions, type Reason, reasons } from "./reasons.ts"
export { MetricTemplate, type MetricTemplateSpec, type MetricTemplateStatus } from "./schema.ts"
