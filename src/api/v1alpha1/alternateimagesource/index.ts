export { type ConditionType, conditions, type PullFailure, type Reason, reasons, stuck } from "./reasons.ts"
export {
  AlternateImageSource,
  type AlternateImageSourceSpec,
  type AlternateImageSourceStatus,
  type Condition,
  type Incident,
  maxCharactersInAll,
  maxSwitches,
  maxSwitchesInAll,
  maxTargetsAvailable,
  type Policy,
  type Replacement,
  type Switch,
  type Target,
  type TargetAvailable,
} from "./schema.ts"
