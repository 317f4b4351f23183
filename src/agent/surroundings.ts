import type { ContainerRuntime } from "#runtime/cri/index.ts"
import type { PullLimits, PullNode } from "./pull/world.ts"

/** The node that an agent works on: its name in the API, and its container runtime. */
export type AgentNode = { name: string; runtime: ContainerRuntime } & Pick<PullNode, "disk">

/** How much an agent may do at once. */
export type AgentLimits = PullLimits & {
  /** Containers stopped in any minute: a stolen manager token cannot restart a whole cluster at once. */
  stopsPerMinute: number
}

/** What the controllers of an agent reach beside the cluster. */
export type Surroundings = { node: AgentNode; limits: AgentLimits }
