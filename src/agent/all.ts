import type { Controller, Permission } from "#runtime/controller.ts"
import { creators } from "./all.generated.ts"
import { usualPullLimits } from "./pull/index.ts"
import type { AgentLimits, AgentNode } from "./surroundings.ts"

export const usualLimits: AgentLimits = { stopsPerMinute: 10, ...usualPullLimits }

/** Every controller of `aim agent`. The agent's role is generated from this list. */
export const agentControllers = (node: AgentNode, limits: Partial<AgentLimits> = {}): readonly Controller[] =>
  creators.map(create => create({ node, limits: { ...usualLimits, ...limits } }))

/** What an agent may do in the API. No controller is started for it. */
export const agentPermissions: readonly Permission[] = agentControllers({
  name: "",
  runtime: undefined as never,
}).flatMap(controller => controller.permissions)
