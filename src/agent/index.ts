export { type AgentOptions, runAgent } from "./agent.ts"
export { type AgentLimits, type AgentNode, agentControllers, usualLimits } from "./all.ts"
