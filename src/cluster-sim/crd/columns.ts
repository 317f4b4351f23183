import type { Printer, TableColumn } from "../apiserver/kind.ts"
import { humanDuration } from "../kinds/cells.ts"
import type { Json, Obj } from "../object.ts"
import { type Path, parsePath, valuesAt } from "./json-path.ts"

/** A column as a CRD declares it. */
export type Column = {
  name: string
  type: string
  jsonPath: string
  format?: string
  description?: string
  priority?: number
}

const nameDescription =
  "Name must be unique within a namespace. Is required when creating resources, although some resources may allow a client to request the generation of an appropriate name automatically. Name is primarily intended for creation idempotence and configuration definition. Cannot be updated. More info: https://kubernetes.io/docs/concepts/overview/working-with-objects/names#names"
const ageDescription =
  "CreationTimestamp is a timestamp representing the server time when this object was created. It is not guaranteed to be set in happens-before order across separate operations. Clients may not set this value. It is represented in RFC3339 form and is in UTC.\n\nPopulated by the system. Read-only. Null for lists. More info: https://git.k8s.io/community/contributors/devel/sig-architecture/api-conventions.md#metadata"

const ageColumn: Column = {
  name: "Age",
  type: "date",
  jsonPath: ".metadata.creationTimestamp",
  description: ageDescription,
}

/** The rows of a custom kind. Without columns of its own it shows its age. */
export function printerOf(declared: readonly Column[] | undefined): Printer {
  const columns = declared?.length ? declared : [ageColumn]
  const paths = columns.map(({ jsonPath }) => parsePath(jsonPath))
  return {
    columns: [
      { name: "Name", type: "string", format: "name", description: nameDescription, priority: 0 },
      ...columns.map(tableColumn),
    ],
    row: (object: Obj, nowMs: number) => [
      object.metadata.name,
      ...columns.map(({ type }, index) => cell(type, paths[index], object, nowMs)),
    ],
  }
}

const tableColumn = ({ name, type, jsonPath, format = "", description, priority = 0 }: Column): TableColumn => ({
  name,
  type,
  format,
  description: description || `Custom resource definition column (in JSONPath format): ${jsonPath}`,
  priority,
})

function cell(type: string, path: Path | undefined, object: Obj, nowMs: number): Json {
  const [value] = path ? valuesAt(object, path) : []
  if (value === undefined || value === null) return null
  switch (type) {
    case "string":
      return typeof value === "string" ? value : JSON.stringify(sorted(value))
    case "integer":
      return typeof value === "number" ? Math.trunc(value) : null
    case "number":
      return typeof value === "number" ? value : null
    case "boolean":
      return typeof value === "boolean" ? value : null
    default: {
      if (typeof value !== "string") return null
      const time = Date.parse(value)
      return Number.isNaN(time) ? "<invalid>" : humanDuration(nowMs - time)
    }
  }
}

/** As Go writes maps: by key. */
function sorted(value: Json): Json {
  if (Array.isArray(value)) return value.map(sorted)
  if (typeof value !== "object" || value === null) return value
  return Object.fromEntries(
    Object.keys(value)
      .sort()
      .map(key => [key, sorted(value[key])]),
  )
}
