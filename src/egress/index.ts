export { type Allowances, allowanceOf, parseAllowance, readAllowances } from "./allowances.ts"
export { excerptOf } from "./body.ts"
export { type Foreseen, foresee } from "./foresee.ts"
export {
  createEgress,
  type Egress,
  type EgressAnswer,
  type EgressFailure,
  type EgressOptions,
  type EgressRequest,
} from "./request.ts"
export type { EndpointSeen, Rules, ServiceSeen } from "./rules.ts"
