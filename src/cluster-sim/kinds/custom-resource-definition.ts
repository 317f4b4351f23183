import type { Definition } from "./define.ts"

export const customResourceDefinition: Definition = {
  apiVersion: "apiextensions.k8s.io/v1",
  kind: "CustomResourceDefinition",
  hasGeneration: true,
  hasStatus: true,
  strategy: { allowsUnconditionalUpdate: false },
  row: object => [object.metadata.name, object.metadata.creationTimestamp],
}
