export { createNodeImageController } from "./controller.ts"
