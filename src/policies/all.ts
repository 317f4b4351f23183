import { alternateImageSourceAuthor } from "./alternateimagesource-author.ts"
import { alternateImageSourceNewPods } from "./alternateimagesource-new-pods.ts"
import type { Policy } from "./policy.ts"
import { serializeEnforce, serializeWarn } from "./serviceimage-serialize.ts"

/** Every admission policy of the product; last those that servers before 1.36 do not know. */
export const policies: readonly Policy[] = [
  serializeEnforce,
  serializeWarn,
  alternateImageSourceAuthor,
  alternateImageSourceNewPods,
]
