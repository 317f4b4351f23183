import { resourceName } from "#runtime/resource.ts"
import { quote } from "../apiserver/refusals.ts"
import { StatusError } from "../status-error.ts"
import type { Attributes } from "./attributes.ts"

/** What a policy answers. Its words are those of a Forbidden, whatever code and reason go with them. */
export function refusal(request: Attributes, { code, reason, why, causes, isPlain = false }: Refusal): StatusError {
  const { group, plural } = request.served
  const { metadata } = request.object ?? {}
  // The name is not invented yet where the server invents one.
  const name = request.name || metadata?.name || metadata?.generateName || "Unknown"
  const message = isPlain ? why : `${resourceName({ group, plural })} ${quote(name)} is forbidden: ${why}`
  return new StatusError(code, reason, message, {
    name,
    ...(group && { group }),
    kind: plural,
    causes: causes.map(message => ({ reason: "", message, field: "" })),
  })
}

type Refusal = {
  code: number
  reason: string
  why: string
  causes: readonly string[]
  /** The message says why and no more. */
  isPlain?: boolean
}
