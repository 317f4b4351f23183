export { type ConditionType, conditions, type Reason, reasons } from "./reasons.ts"
export { AlertProvider, type AlertProviderSpec, type AlertProviderStatus } from "./schema.ts"
