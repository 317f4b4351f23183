export type { HookType } from "./analysis.ts"
export { maxGates, maxHistory, maxImages, maxMetrics, maxTrackedConfigs, maxWebhooks } from "./bounds.ts"
export {
  type ConditionType,
  conditions,
  type GateState,
  gateStates,
  type MetricVerdict,
  type Phase,
  phases,
  type Reason,
  type RunResult,
  reasons,
  results,
  verdicts,
} from "./reasons.ts"
export {
  type Alert,
  type Analysis,
  Canary,
  type CanarySpec,
  type CanarySpecInput,
  type CanaryStatus,
  type Condition,
  type EndedRun,
  type Gate,
  type Metric,
  type MetricStatus,
  type Revision,
  type Run,
  type Service,
  type SessionAffinity,
  type Webhook,
} from "./schema.ts"
