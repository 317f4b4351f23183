import type { Json } from "../object.ts"
import { since } from "./cells.ts"
import { validateEvent } from "./core-validation.ts"
import type { Definition } from "./define.ts"

/** Both groups serve the same events. They are kept as core/v1 has them. */
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

/** An event of events.k8s.io/v1 as core/v1 has it; one that is already in that form stays. */
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

/** The other way. */
export function eventFromCore(event: Json): Json {
  if (event.apiVersion !== "v1") return event
  const next = { ...event, apiVersion: "events.k8s.io/v1" }
  for (const [core, modern] of renamed)
    if (Object.hasOwn(next, core)) {
      next[modern] = next[core]
      delete next[core]
    }
  // Core always tells these two, the newer group only when there is something to tell.
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
