import type { Controller } from "#runtime/controller.ts"
import type { ContainerRuntime } from "#runtime/cri/index.ts"
import { createRecreateController } from "./recreate/controller.ts"

/** The node that an agent works on: its name in the API, and its container runtime. */
export type AgentNode = { name: string; runtime: ContainerRuntime }

/** How much an agent may do at once. */
export type AgentLimits = {
  /** Containers stopped in any minute: a stolen manager token cannot restart a whole cluster at once. */
  stopsPerMinute: number
}

export const usualLimits: AgentLimits = { stopsPerMinute: 10 }

/** Every controller of `aim agent`. The agent's role is generated from this list. */
export const agentControllers = (node: AgentNode, limits: AgentLimits = usualLimits): readonly Controller[] => [
  createRecreateController(node, limits),
]
