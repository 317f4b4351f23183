// Generated from src/api/names.ts and the folders of the kinds by npm run generate.
import type { Explained } from "./explained.ts"

/** How to explain each kind. Loaded when it is asked for. */
export const explanations: Readonly<Record<string, () => Promise<Explained>>> = {
  ServiceImage: async () => (await import("./serviceimage/index.ts")).explained,
  AlternateImageSource: async () => (await import("./alternateimagesource/index.ts")).explained,
  ContainerRecreateRequest: async () => (await import("./containerrecreaterequest/index.ts")).explained,
  NodeImage: async () => (await import("./nodeimage/index.ts")).explained,
  ImagePullJob: async () => (await import("./imagepulljob/index.ts")).explained,
  ImageListPullJob: async () => (await import("./imagelistpulljob/index.ts")).explained,
  Canary: async () => (await import("./canary/index.ts")).explained,
  MetricTemplate: async () => (await import("./metrictemplate/index.ts")).explained,
  AlertProvider: async () => (await import("./alertprovider/index.ts")).explained,
}
