import type { Kind } from "./kind.ts"
import { ServiceImage } from "./v1alpha1/serviceimage/index.ts"

/** Every kind of ours. */
export const kinds: readonly Kind[] = [ServiceImage]
