export { createGateway, type GatewayOptions, type SimulatedGateway } from "./gateway.ts"
export type { AppliedRoute } from "./plan.ts"
