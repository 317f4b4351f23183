export { type Allowances, parseAllowance, readAllowances } from "./allowances.ts"
export { type EndpointSeen, howToAllow, mayConnect, type Rules, type ServiceSeen } from "./rules.ts"
