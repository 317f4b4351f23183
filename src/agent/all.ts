import type { Controller, Permission } from "#runtime/controller.ts"
import { creators } from "./all.generated.ts"
import type { AgentLimits, AgentNode } from "./surroundings.ts"

export const usualLimits: AgentLimits = { stopsPerMinute: 10 }

/** Every controller of `aim agent`. The agent's role is generated from this list. */
export const agentControllers = (node: AgentNode, limits: AgentLimits = usualLimits): readonly Controller[] =>
  creators.map(create => create({ node, limits }))

/** What an agent may do in the API. No controller is started for it. */
export const agentPermissions: readonly Permission[] = agentControllers({
  name: "",
  runtime: undefined as never,
}).flatMap(controller => controller.permissions)
