export { createPullController } from "./controller.ts"
export { type PullLimits, type PullNode, usualPullLimits } from "./world.ts"
