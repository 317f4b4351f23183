import { apiVersionOf } from "#runtime/resource.ts"
import type { Json, ManagedFields, Obj } from "../object.ts"
import { applyPatch, applyServerSide, decode, trackScale, trackUpdate } from "../schema/index.ts"
import type { ServedKind } from "./kind.ts"
import { replicasPath } from "./scale.ts"
import type { PatchBody, WriteOptions } from "./storage.ts"

/** How bodies and patches become objects, by the schema of their kind. The storage knows schemas only through this. */
export type Patching = {
  /** The body as the server reads it: unknown fields dropped or refused, wrong types refused. */
  decode(kind: ServedKind, body: Json, options: WriteOptions): Json
  /** The patched object, decoded. */
  patch(kind: ServedKind, current: Obj, patch: PatchBody, options: WriteOptions): Json
  /** Server-side apply: the merged object, its managedFields already right. */
  apply(kind: ServedKind, live: Obj | undefined, body: Json, options: WriteOptions & { now: string }): Json
  /** The managedFields after any other write, from the sent object with defaults, before the kind's strategy. */
  track(input: Tracked): readonly ManagedFields[] | undefined
}

export type Tracked = {
  kind: ServedKind
  before: Obj | undefined
  after: Json
  manager: string
  subresource?: string | undefined
  now: string
}

export const schemaPatching: Patching = {
  decode(kind, body, { fieldValidation, warn, text }) {
    const { value, warnings } = decode(kind.schema, body, {
      apiVersion: apiVersionOf(kind),
      kind: kind.kind,
      isCustom: kind.isCustom,
      validation: fieldValidation,
      text,
    })
    for (const warning of warnings) warn?.(warning)
    return value
  },
  patch(kind, current, { type, body }, { fieldValidation, warn, text }) {
    if (type === "apply") throw new Error("what is applied is not merged into what is stored, but tracked")
    const { value, warnings } = applyPatch({
      type,
      schema: kind.schema,
      kind: kind.kind,
      isCustom: kind.isCustom,
      current,
      body,
      text,
      validation: fieldValidation,
    })
    for (const warning of warnings) warn?.(warning)
    return value
  },
  apply(kind, live, body, { fieldManager = "", force = false, subresource, now }) {
    return applyServerSide({
      schema: kind.schema,
      apiVersion: apiVersionOf(kind),
      kind: kind.kind,
      isCustom: kind.isCustom,
      live,
      applied: body,
      manager: fieldManager,
      force,
      subresource,
      now,
      resetFields: resetFields(kind, body, subresource),
    })
  },
  track({ kind, before, after, manager, subresource, now }) {
    if (before && subresource === "scale")
      return trackScale({ before, after, manager, apiVersion: apiVersionOf(kind), path: replicasPath(kind) })
    return trackUpdate({
      schema: kind.schema,
      before,
      after,
      manager,
      apiVersion: apiVersionOf(kind),
      subresource,
      now,
      isCustom: kind.isCustom,
      resetFields: resetFields(kind, after, subresource),
    })
  },
}

/** Fields that an endpoint always resets, so that no manager owns them through it. */
function resetFields(kind: ServedKind, object: Json, subresource: string | undefined): string[] {
  if (subresource === "status")
    return Object.keys(object ?? {}).filter(
      field =>
        field !== "apiVersion" && field !== "kind" && field !== "status" && (kind.isCustom || field !== "metadata"),
    )
  return kind.subresources.includes("status") ? ["status"] : []
}
