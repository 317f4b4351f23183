import type { KindNames } from "#api/names.ts"
import type { Cache, Projected } from "#runtime/cache/cache.ts"

/** Why a kind cannot be listed, where a person must act; undefined where it is listed, or may be soon. */
export function whyUnlisted(
  { kind, plural }: Pick<KindNames, "kind" | "plural">,
  { failure }: Partial<Pick<Cache<Projected>, "failure">>,
): string | undefined {
  if (failure?.kind === "NotFound") return `the cluster does not serve ${kind}: apply the output of aim manifests crds`
  if (failure?.kind === "Forbidden") return `aim may not list ${plural}: apply the output of aim manifests rbac`
  return undefined
}
