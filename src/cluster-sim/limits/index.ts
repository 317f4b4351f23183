export { limitAdmission } from "./admission.ts"
export { only, plus, type Quantities, quantities, texts } from "./quantities.ts"
export { countsKind, isInScope, usageOf } from "./usage.ts"
