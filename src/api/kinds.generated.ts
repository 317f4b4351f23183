// Generated from src/api/names.ts and the folders of the kinds by npm run generate.
import type { Kind } from "./kind.ts"
import { ServiceImage } from "./v1alpha1/serviceimage/index.ts"
import { AlternateImageSource } from "./v1alpha1/alternateimagesource/index.ts"
import { ContainerRecreateRequest } from "./v1alpha1/containerrecreaterequest/index.ts"
import { NodeImage } from "./v1alpha1/nodeimage/index.ts"
import { ImagePullJob } from "./v1alpha1/imagepulljob/index.ts"
import { ImageListPullJob } from "./v1alpha1/imagelistpulljob/index.ts"
import { Canary } from "./v1alpha1/canary/index.ts"
import { MetricTemplate } from "./v1alpha1/metrictemplate/index.ts"
import { AlertProvider } from "./v1alpha1/alertprovider/index.ts"

/** Every kind of ours. */
export const kinds: readonly Kind[] = [
  ServiceImage,
  AlternateImageSource,
  ContainerRecreateRequest,
  NodeImage,
  ImagePullJob,
  ImageListPullJob,
  Canary,
  MetricTemplate,
  AlertProvider,
]
