import { compareVersions } from "#lib/resource-version.ts"
import type { KubeObject } from "./resource.ts"

/** Our own write reaches the cache a moment later. A decision from the older copy would repeat or undo it. */
export function newest<T extends Pick<KubeObject, "metadata">>(cached: T, written: T | undefined): T {
  if (!written || written.metadata.uid !== cached.metadata.uid) return cached
  const [a = "", b = ""] = [cached.metadata.resourceVersion, written.metadata.resourceVersion]
  return compareVersions(a, b) >= 0 ? cached : written
}
