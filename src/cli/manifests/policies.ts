import type { Manifest } from "./names.ts"

/** The admission policies of src/policies. There are none yet; what is added there is printed from here. */
export const policies = (): Manifest[] => []
