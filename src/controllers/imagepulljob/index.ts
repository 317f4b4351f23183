export { createImagePullJobController } from "./controller.ts"
