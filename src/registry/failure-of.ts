import { type Failure, failure } from "#core/image/resolution.ts"
import type { Answer } from "#egress/exchange.ts"

/** The class of an unsuccessful answer. */
export function failureOf({ status }: Answer, hostname: string): Failure {
  if (status === 404) return failure("NotFound", `${hostname} has no such image`)
  if (status === 401 || status === 403)
    return failure("Denied", `${hostname} does not let us read this image (${status})`)
  if (status === 429) return failure("RateLimited", `${hostname} asks us to come back later`)
  if (status === 408 || status >= 500) return failure("Unreachable", `${hostname} is in trouble (${status})`)
  // A redirect is not followed: the question is about this registry, and the new address would have to be checked.
  if (status >= 300 && status < 400) return failure("InvalidAnswer", `${hostname} redirects, which is not followed`)
  return failure("InvalidAnswer", `${hostname} answers with status ${status}`)
}
