import type { Instant } from "#lib/instant.ts"

/** In UTC, as every other time that Kubernetes shows: `2026-01-31 12:00:05 UTC`. */
export const dayTime = (at: Instant) => `${new Date(at).toISOString().slice(0, 19).replace("T", " ")} UTC`

/** `12:00:05 UTC` */
export const clockTime = (at: Instant) => dayTime(at).slice(11)
