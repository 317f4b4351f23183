export { kinds } from "./kinds.generated.ts"
