import { resourceName } from "#runtime/resource.ts"
import { quote } from "../apiserver/refusals.ts"
import { StatusError } from "../status-error.ts"
import type { Attributes } from "./attributes.ts"

/** The refusal by a policy. It is worded as a Forbidden, whatever its code and reason are. */
export function refusal(request: Attributes, { code, reason, why, causes, isPlain = false }: Refusal): StatusError {
  const { group, plural } = request.served
  const { metadata } = request.object ?? {}
  // A generated name does not exist yet.
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
  /** The message holds only the cause. */
  isPlain?: boolean
}
