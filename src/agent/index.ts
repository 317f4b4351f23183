export { type AgentOptions, runAgent } from "./agent.ts"
export { agentControllers, agentPermissions, usualLimits } from "./all.ts"
export type { AgentLimits, AgentNode } from "./surroundings.ts"
