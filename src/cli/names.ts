import { isIP } from "node:net"
import { UsageError } from "./command.ts"

/** Checked before it becomes part of a path or a manifest. */
export function checkNamespace(name: string, where: string): string {
  if (name.length <= 63 && /^[a-z0-9]([-a-z0-9]*[a-z0-9])?$/.test(name)) return name
  throw new UsageError(
    `${where}: ${name || '""'} is not a namespace: write lower-case letters, digits and '-', at most 63`,
  )
}

export const isObjectName = (name: string) => name.length <= 253 && /^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$/.test(name)

/** As browsers send it: a name or an address, and a port where it is not the usual one. */
export function checkHost(host: string | undefined): string {
  const example = "the name that browsers use, such as --host aim.example.com"
  if (host === undefined) throw new UsageError(`the dashboard of a cluster needs ${example}`)
  const [, name = "", port] = /^(\[[0-9a-fA-F:]+\]|[^:[\]]+)(?::(\d{1,5}))?$/.exec(host) ?? []
  const isName = name.length <= 253 && /^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$/i.test(name)
  if ((isName || isIP(name.replace(/^\[|\]$/g, "")) > 0) && Number(port ?? 1) <= 65_535) return host
  throw new UsageError(`--host: ${host} is not a host: write ${example}`)
}

export function checkBasePath(path: string): string {
  if (path === "" || /^(\/[A-Za-z0-9_-]+)+$/.test(path)) return path
  throw new UsageError(`--base-path: ${path} is not a path: write one such as /aim, with letters, digits, '-' and '_'`)
}
