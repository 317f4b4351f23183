export { nodeLifecycle } from "../kube-controllers/node-lifecycle.ts"
export { type SchedulerOptions, scheduler } from "../scheduler/scheduler.ts"
export type { Behaviour } from "./behaviour.ts"
export { parseImage } from "./image-reference.ts"
export type { NodeSpec } from "./node-object.ts"
export { addNodes, type Nodes, type NodesOptions, nodes } from "./nodes.ts"
export {
  createRegistries,
  type Fault,
  type ImageContent,
  type Registries,
  type RegistryOptions,
} from "./registries.ts"
export { parseRegistriesFile } from "./registries-file.ts"
