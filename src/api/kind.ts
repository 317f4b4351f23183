import type { z } from "zod"
import type { KindNames } from "./names.ts"
import { type StructuralSchema, structuralSchema } from "./structural-schema.ts"

export type PrinterColumn = {
  name: string
  type: "string" | "integer" | "date" | "boolean" | "number"
  jsonPath: string
  description?: string
  /** Above 0: shown only by `kubectl get -o wide`. */
  priority?: number
}

export type KindDeclaration<Spec extends z.ZodType = z.ZodType, Status extends z.ZodType = z.ZodType> = KindNames & {
  /** One sentence: what an object of this kind is for. */
  description: string
  printerColumns: PrinterColumn[]
  /** Further words that `kubectl get` finds the kind by, beside `aim`. */
  categories?: string[]
  /** Paths of fields by which lists and watches can be narrowed, as `.status.nodeName`; at most eight. */
  selectableFields?: string[]
  spec: Spec
  status: Status
}

/** A kind, declared once: its type, validator, CustomResourceDefinition and reference page derive from this. */
export type Kind<Spec extends z.ZodType = z.ZodType, Status extends z.ZodType = z.ZodType> = KindDeclaration<
  Spec,
  Status
> & {
  apiVersion: string
  singular: string
  categories: string[]
  /** Schema of the whole object; metadata is left to the server, as in a CustomResourceDefinition. */
  readonly schema: StructuralSchema
}

/** The object as it is read from the server: defaults are filled in. */
export type ObjectOf<K extends Kind> = {
  apiVersion: string
  kind: string
  metadata: ObjectMeta
  spec: z.output<K["spec"]>
  status?: z.output<K["status"]>
}

/** What we use of metav1.ObjectMeta. */
export type ObjectMeta = {
  name: string
  namespace?: string
  uid?: string
  resourceVersion?: string
  generation?: number
  creationTimestamp?: string
  deletionTimestamp?: string
  labels?: Record<string, string>
  annotations?: Record<string, string>
}

export function defineKind<Spec extends z.ZodType, Status extends z.ZodType>(
  declaration: KindDeclaration<Spec, Status>,
): Kind<Spec, Status> {
  let schema: StructuralSchema | undefined
  return {
    ...declaration,
    apiVersion: `${declaration.group}/${declaration.version}`,
    singular: declaration.kind.toLowerCase(),
    categories: ["aim", ...(declaration.categories ?? [])],
    // Built on first use: a controller needs only the names of kinds, and should not build schemas at start.
    get schema() {
      schema ??= objectSchema(declaration)
      return schema
    },
  }
}

const objectSchema = ({ description, spec, status }: KindDeclaration): StructuralSchema => ({
  description,
  type: "object",
  required: ["spec"],
  properties: {
    apiVersion: { type: "string" },
    kind: { type: "string" },
    metadata: { type: "object" },
    // Shown by `kubectl explain`.
    spec: { description: "What is wanted.", ...structuralSchema(spec) },
    status: { description: "What the controller last reported.", ...structuralSchema(status) },
  },
})
