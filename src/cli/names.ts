import { UsageError } from "./command.ts"

/** Checked before it becomes part of a path or a manifest. */
export function checkNamespace(name: string, where: string): string {
  if (name.length <= 63 && /^[a-z0-9]([-a-z0-9]*[a-z0-9])?$/.test(name)) return name
  throw new UsageError(
    `${where}: ${name || '""'} is not a namespace: write lower-case letters, digits and '-', at most 63`,
  )
}

export const isObjectName = (name: string) => name.length <= 253 && /^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$/.test(name)
