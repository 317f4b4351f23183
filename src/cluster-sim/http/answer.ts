import type { Json } from "../object.ts"
import { StatusError } from "../status-error.ts"

/** The server's answer to one request. A body that is not text is a stream. */
export type Answer = {
  status: number
  headers: Record<string, string>
  body: string | AsyncIterable<Uint8Array>
}

export const json = (body: Json, status = 200, headers: Record<string, string> = {}): Answer => ({
  status,
  headers: { "content-type": "application/json", "cache-control": "no-cache, private", ...headers },
  body: typeof body === "string" ? body : `${JSON.stringify(body)}\n`,
})

export const text = (body: string, status = 200): Answer => ({
  status,
  headers: { "content-type": "text/plain; charset=utf-8", "cache-control": "no-cache, private" },
  body,
})

/** The server's answer to an unknown path, which is no Status. */
export const unknownPath = () => text("404 page not found\n", 404)

/** The answer for a resource that a built-in group does not have. */
export const unknownResource = () =>
  new StatusError(404, "NotFound", "the server could not find the requested resource", {})

/** A failure as a `Status` object. */
export function statusOf(error: StatusError): Json {
  const { code, reason, details } = error
  const { causes, ...rest } = details ?? {}
  return {
    kind: "Status",
    apiVersion: "v1",
    metadata: error.continue ? { continue: error.continue } : {},
    status: "Failure",
    message: error.message,
    ...(reason && { reason }),
    ...(details && {
      details: {
        ...rest,
        ...(causes &&
          causes.length > 0 && {
            causes: causes.map(({ reason: type, message, field }) => ({
              ...(type && { reason: type }),
              message,
              ...(field && { field }),
            })),
          }),
      },
    }),
    code,
  }
}

/** Any error as an answer. An error that is no refusal is a bug of ours, and is shown as the server shows its bugs. */
export function failure(error: unknown): Answer {
  const refusal =
    error instanceof StatusError
      ? error
      : new StatusError(
          500,
          "InternalError",
          `Internal error occurred: ${error instanceof Error ? error.stack : error}`,
        )
  const { retryAfterSeconds } = refusal.details ?? {}
  return json(statusOf(refusal), refusal.code, retryAfterSeconds ? { "retry-after": String(retryAfterSeconds) } : {})
}
