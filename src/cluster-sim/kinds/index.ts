export { builtInKinds } from "./built-in.ts"
export { podAdmission } from "./pod-admission.ts"
