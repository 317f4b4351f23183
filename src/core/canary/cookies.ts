import { createHash } from "node:crypto"
import type { Canary, CanaryStatus, Run } from "#api/v1alpha1/canary/index.ts"
import type { RouteContext } from "./router.ts"

/** The same for every process, and another one for each run: a cookie of an earlier run keeps no client. */
const cookieValue = ({ metadata }: Canary, run: Pick<Run, "id">, side: string): string =>
  createHash("sha256")
    .update(JSON.stringify([metadata.uid, run.id, side]))
    .digest("hex")
    .slice(0, 10)

const named = (name: string | undefined, value: string) => (name ? `${name}=${value}` : undefined)

/** The cookies of session affinity. As soon as the target has no requests, clients drop the cookie of its run. */
export function cookiesOf(canary: Canary, run: Pick<Run, "id"> | undefined): RouteContext["cookies"] {
  const { sessionAffinity } = canary.spec.analysis
  if (!sessionAffinity) return undefined
  if (!run) return { previous: canary.status?.previousSessionAffinityCookie }
  const target = named(sessionAffinity.cookieName, cookieValue(canary, run, "target"))
  return {
    target,
    source: named(sessionAffinity.primaryCookieName, cookieValue(canary, run, "source")),
    previous: target,
  }
}

type CookieFields = Partial<
  Pick<CanaryStatus, "sessionAffinityCookie" | "primarySessionAffinityCookie" | "previousSessionAffinityCookie">
>

/** The same in the fields of Flagger. A run that is over leaves its cookie as the previous one. */
export function cookieFields(
  canary: Canary,
  run: Pick<Run, "id"> | undefined,
  ended?: { readonly id: string },
): CookieFields {
  if (!canary.spec.analysis.sessionAffinity) return {}
  const previous = ended ? cookiesOf(canary, ended)?.target : canary.status?.previousSessionAffinityCookie
  const now = run && cookiesOf(canary, run)
  return {
    ...(now?.target && { sessionAffinityCookie: now.target }),
    ...(now?.source && { primarySessionAffinityCookie: now.source }),
    ...(previous !== undefined && { previousSessionAffinityCookie: previous }),
  }
}
