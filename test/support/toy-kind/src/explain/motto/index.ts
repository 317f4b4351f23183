import { explainKind } from "#explain/kind.ts"
import { metadata } from "#explain/shapes.ts"
import { both, type Shape } from "#lib/shape.ts"
import { reasons } from "../../api/v1alpha1/motto/index.ts"
import { configMaps, motto } from "../../controllers/motto/controller.ts"

const shape: Shape = { metadata: both(metadata, { labels: { motto: "value" } }), data: { motto: "value" } }

export const explained = explainKind(motto, {
  reasons,
  beside: [{ resource: configMaps, shape, options: { labelSelector: "motto" } }],
  next: ({ different }) => different.map(({ metadata: { name } }) => `ConfigMap ${name} gets the text`),
})
