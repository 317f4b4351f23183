export { createImageListPullJobController } from "./controller.ts"
