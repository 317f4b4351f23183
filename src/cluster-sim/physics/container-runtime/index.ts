export type { Container, ContainerSource, Sandbox } from "./container.ts"
export type { NamedImage, PullOutcome, StoredImage } from "./images.ts"
export { type Call, NodeRuntime } from "./node-runtime.ts"
