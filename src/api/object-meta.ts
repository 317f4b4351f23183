import { labels } from "./fields.ts"
import type { StructuralSchema } from "./structural-schema.ts"
import { structuralSchema } from "./structural-schema.ts"

const text: StructuralSchema = { type: "string" }
const anything: StructuralSchema = { "x-kubernetes-preserve-unknown-fields": true }

/** The part of metav1.ObjectMeta that people write; fields that only the server writes are accepted unread. */
export const objectMetaSchema: StructuralSchema = {
  type: "object",
  properties: {
    name: {
      ...text,
      maxLength: 253,
      pattern: "^[a-z0-9]([-a-z0-9]*[a-z0-9])?([.][a-z0-9]([-a-z0-9]*[a-z0-9])?)*$",
      hint: "write lower-case letters, digits, '-' and '.', beginning and ending with a letter or digit",
    },
    generateName: text,
    namespace: text,
    labels: structuralSchema(labels()),
    annotations: { type: "object", additionalProperties: text },
    finalizers: { type: "array", items: text },
    ownerReferences: anything,
    managedFields: anything,
    uid: text,
    resourceVersion: text,
    generation: { type: "integer" },
    creationTimestamp: { ...text, nullable: true },
    deletionTimestamp: { ...text, nullable: true },
    deletionGracePeriodSeconds: { type: "integer" },
    selfLink: text,
  },
}
