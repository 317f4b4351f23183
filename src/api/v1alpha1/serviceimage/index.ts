export {
  approvedAnnotation,
  failureHaltsUpdateAnnotation,
  fenceAnnotation,
  manuallySpecifiedImageAnnotation,
  retryAnnotation,
  rollbackAnnotation,
  supersedeAnnotation,
} from "./annotations.ts"
export {
  maxAnalysisMessage,
  maxEndpointsMessage,
  maxExamples,
  maxExamplesPerTier,
  maxFailureMessage,
  maxFailureMessages,
  maxHistory,
  maxHistoryImageCharacters,
  maxInflight,
  maxJudgedTiers,
  maxTiers,
} from "./bounds.ts"
export {
  type ImageSpec,
  type ImageSpecCondition,
  imageSpec,
  imageSpecConditions,
  upgradeTierLabel,
} from "./image-spec.ts"
export {
  type ConditionType,
  conditions,
  type FailureReason,
  type FailureScope,
  type Phase,
  phases,
  type Reason,
  reasons,
  type State,
} from "./reasons.ts"
export {
  type Condition,
  type Failure,
  type HistoryEntry,
  type OldEndpoints,
  type Operation,
  ServiceImage,
  type ServiceImageSpec,
  type ServiceImageSpecInput,
  type ServiceImageStatus,
  type Step,
  type Target,
  type Tier,
  type TierAnalysis,
  type TierAnalysisStatus,
  type TierStatus,
} from "./schema.ts"
export { builtInGroups, unsafeNames } from "./spec.ts"
