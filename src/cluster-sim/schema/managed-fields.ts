import type { Json, ManagedFields, Obj } from "../object.ts"
import type { Schema } from "./schema.ts"

export type TrackInput = {
  schema: Schema
  /** What is stored; undefined on create. */
  before: Obj | undefined
  /** What is about to be stored, after defaulting, admission and prepareUpdate; with the managedFields the client sent. */
  after: Json
  manager: string
  apiVersion: string
  subresource?: string | undefined
  now: string // RFC 3339, seconds
  /** Top-level fields this endpoint puts back and so nobody owns through it: `["status"]` on the main one. */
  resetFields?: readonly string[]
}

/** Who owns what after a create, update or non-apply patch: what goes to metadata.managedFields (undefined: nobody). */
export function trackUpdate({ before }: TrackInput): readonly ManagedFields[] | undefined {
  return before?.metadata.managedFields
}

export type ApplyInput = {
  schema: Schema
  /** What is stored; undefined: the apply creates. */
  live: Obj | undefined
  /** The applied configuration as sent (already decoded with `decode`). */
  applied: Json
  manager: string
  force: boolean
  apiVersion: string
  subresource?: string | undefined
  now: string
  resetFields?: readonly string[]
}

/**
 * Merges an applied configuration into the live object. The result still has to go through defaulting, prepareUpdate
 * and validation like any update; its metadata.managedFields are already right, so do not track it again.
 * Throws StatusError: 409 with the server's causes, 400 for a configuration that cannot be applied.
 */
export function applyServerSide({ applied }: ApplyInput): Json {
  return applied
}
