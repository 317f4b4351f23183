import type { StatusError } from "../../status-error.ts"

/** Whether a create was refused because its namespace is being deleted. It is neither reported nor retried. */
export const isNamespaceTerminating = (error: StatusError) =>
  error.details?.causes?.some(({ reason }) => reason === "NamespaceTerminating") ?? false
