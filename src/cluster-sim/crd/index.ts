export { customKinds } from "./custom-kinds.ts"
export { validateDefinition, validateDefinitionUpdate } from "./definition.ts"
export { serveCustomKinds } from "./serve-custom-kinds.ts"
