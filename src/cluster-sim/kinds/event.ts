import type { Json } from "../object.ts"
import { since } from "./cells.ts"
import { validateEvent } from "./core-validation.ts"
import type { Definition } from "./define.ts"

/** Both groups serve the same events. They are stored as core/v1. */
export const event: Definition = {
  apiVersion: "v1",
  kind: "Event",
  storage: "events",
  strategy: {
    allowsCreateOnUpdate: true,
    selectableFields: eventFields,
    validateCreate: object => validateEvent(object, false),
    validateUpdate: object => validateEvent(object, false),
  },
  row: eventRow,
}

export const newEvent: Definition = {
  apiVersion: "events.k8s.io/v1",
  kind: "Event",
  storage: "events",
  convert: { toStorage: eventToCore, fromStorage: eventFromCore },
  strategy: {
    allowsCreateOnUpdate: true,
    selectableFields: object => eventFields(eventToCore(object)),
    validateCreate: object => validateEvent(eventToCore(object), true),
  },
  row: (object, nowMs) => eventRow(eventToCore(object), nowMs),
}

const renamed: [core: string, modern: string][] = [
  ["involvedObject", "regarding"],
  ["message", "note"],
  ["source", "deprecatedSource"],
  ["firstTimestamp", "deprecatedFirstTimestamp"],
  ["lastTimestamp", "deprecatedLastTimestamp"],
  ["count", "deprecatedCount"],
  ["reportingComponent", "reportingController"],
]

/** Converts an event of events.k8s.io/v1 to core/v1; an event of core/v1 is unchanged. */
export function eventToCore(event: Json): Json {
  if (event.apiVersion !== "events.k8s.io/v1") return event
  const next = { ...event, apiVersion: "v1" }
  for (const [core, modern] of renamed)
    if (Object.hasOwn(next, modern)) {
      next[core] = next[modern]
      delete next[modern]
    }
  return next
}

/** Converts an event of core/v1 to events.k8s.io/v1. */
export function eventFromCore(event: Json): Json {
  if (event.apiVersion !== "v1") return event
  const next = { ...event, apiVersion: "events.k8s.io/v1" }
  for (const [core, modern] of renamed)
    if (Object.hasOwn(next, core)) {
      next[modern] = next[core]
      delete next[core]
    }
  // core/v1 always writes these two fields, the newer group only if they are not empty.
  for (const field of ["reportingController", "reportingInstance"]) if (next[field] === "") delete next[field]
  return next
}

function eventFields({ involvedObject = {}, reason = "", reportingComponent = "", source = {}, type = "" }: Json) {
  return {
    "involvedObject.kind": involvedObject.kind ?? "",
    "involvedObject.namespace": involvedObject.namespace ?? "",
    "involvedObject.name": involvedObject.name ?? "",
    "involvedObject.uid": involvedObject.uid ?? "",
    "involvedObject.apiVersion": involvedObject.apiVersion ?? "",
    "involvedObject.resourceVersion": involvedObject.resourceVersion ?? "",
    "involvedObject.fieldPath": involvedObject.fieldPath ?? "",
    reason,
    reportingComponent,
    source: source.component || reportingComponent,
    type,
  }
}

function eventRow(object: Json, nowMs: number): Json[] {
  const { involvedObject = {}, series, source = {}, eventTime } = object
  const first = since(object.firstTimestamp ?? eventTime, nowMs)
  const last = series
    ? since(series.lastObservedTime, nowMs)
    : object.lastTimestamp
      ? since(object.lastTimestamp, nowMs)
      : first
  const kind = (involvedObject.kind ?? "").toLowerCase()
  const component = source.component || object.reportingComponent || ""
  const instance = source.host || object.reportingInstance
  return [
    last,
    object.type ?? "",
    object.reason ?? "",
    involvedObject.name ? `${kind}/${involvedObject.name}` : kind,
    involvedObject.fieldPath ?? "",
    instance ? `${component}, ${instance}` : component,
    (object.message ?? "").trim(),
    first,
    series ? series.count : object.count || 1,
    object.metadata.name,
  ]
}
