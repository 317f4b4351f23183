export { connectRuntime } from "./client.ts"
export type * from "./container-runtime.ts"
export { isRuntimeFailure, RuntimeError, type RuntimeFailure } from "./errors.ts"
export {
  type ContainerPort,
  kubeletAnnotations,
  kubeletLabels,
  type PreStop,
  type Recorded,
  recordedBy,
} from "./kubelet-keys.ts"
