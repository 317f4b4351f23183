import type { Json } from "../object.ts"

/** `components.schemas` of one group version's /openapi/v3 document, descriptions included (`kubectl explain`). */
export async function openApiSchemas(_apiVersion: string): Promise<Record<string, Json>> {
  return {}
}
