import type { ValidatingPolicy } from "./policy.ts"
import { serializeEnforce, serializeWarn } from "./serviceimage-serialize.ts"

/** Every admission policy of the product. */
export const policies: readonly ValidatingPolicy[] = [serializeEnforce, serializeWarn]
