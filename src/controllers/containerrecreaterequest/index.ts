export { createContainerRecreateRequestController } from "./controller.ts"
