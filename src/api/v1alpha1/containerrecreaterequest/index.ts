export { type ConditionType, conditions, type Reason, type Refusal, reasons, stuck } from "./reasons.ts"
export {
  type Condition,
  type ContainerPhase,
  ContainerRecreateRequest,
  type ContainerRecreateRequestSpec,
  type ContainerRecreateRequestStatus,
  type ContainerSnapshot,
  type ContainerState,
  containerMessageMax,
  limitPrefix,
  type Phase,
} from "./schema.ts"
