export { serveCustomKinds } from "./serve-custom-kinds.ts"
