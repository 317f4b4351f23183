/** Milliseconds since the epoch. Plain numbers keep plans comparable and serialisable. */
export type Instant = number

/** As Kubernetes writes `metav1.Time`: RFC 3339 in UTC, whole seconds. */
export const formatInstant = (at: Instant) => `${new Date(at).toISOString().slice(0, 19)}Z`

/** As Kubernetes writes `metav1.MicroTime`: six fractional digits; with fewer the API server answers 400. */
export const formatMicroInstant = (at: Instant) => new Date(at).toISOString().replace("Z", "000Z")

/** Undefined for anything that is not a time, so that hostile text cannot become NaN in a comparison. */
export function parseInstant(text: unknown): Instant | undefined {
  if (typeof text !== "string" || text.length > 40) return undefined
  const at = Date.parse(text)
  return at >= firstAt && at <= lastAt ? at : undefined
}

/** The years that RFC 3339 can write. JavaScript allows others, which a server refuses. */
const [firstAt, lastAt] = [Date.parse("0000-01-01T00:00:00Z"), Date.parse("9999-12-31T23:59:59.999Z")]

/** The earliest defined instant. */
export function earliest(...times: (Instant | undefined)[]): Instant | undefined {
  const known = times.filter(at => at !== undefined)
  return known.length > 0 ? Math.min(...known) : undefined
}
