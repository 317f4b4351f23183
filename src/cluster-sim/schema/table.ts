import type { Schema, SchemaRef } from "./schema.ts"

/** The name of a built-in kind's type in the table: ("apps/v1", "Deployment") → "io.k8s.api.apps.v1.Deployment". */
export function definitionName(_apiVersion: string, _kind: string): string | undefined {
  return undefined
}

/** The schema of a built-in kind. */
export function kubernetesSchema(_apiVersion: string, _kind: string): Schema | undefined {
  return undefined
}

/** The node behind a reference. Inline nodes are themselves, so schemas from CRDs go through here too. */
export function resolve(ref: SchemaRef): Schema {
  if (typeof ref !== "string") return ref
  return { type: "any" }
}
