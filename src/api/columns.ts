import type { PrinterColumn } from "./kind.ts"

const ready = (field: string) => `.status.conditions[?(@.type=="Ready")].${field}`

/** What `kubectl get` shows of every kind with a Ready condition. */
export const readyColumn: PrinterColumn = { name: "Ready", type: "string", jsonPath: ready("status") }
export const reasonColumn: PrinterColumn = { name: "Reason", type: "string", jsonPath: ready("reason") }
export const ageColumn: PrinterColumn = { name: "Age", type: "date", jsonPath: ".metadata.creationTimestamp" }
export const messageColumn: PrinterColumn = { name: "Message", type: "string", jsonPath: ready("message"), priority: 1 }
