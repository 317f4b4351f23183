import type { Kind } from "./kind.ts"
import { AlternateImageSource } from "./v1alpha1/alternateimagesource/index.ts"
import { ServiceImage } from "./v1alpha1/serviceimage/index.ts"

/** Every kind of ours. */
export const kinds: readonly Kind[] = [ServiceImage, AlternateImageSource]
