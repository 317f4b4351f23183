/**
 * Where cluster-sim differs from a real Kubernetes and we leave it at that: case and reason. A case that agrees after
 * all must go from here, or the suite fails. `docs/cluster-sim.md` shows this list.
 */
export const accepted: Record<string, string> = {}
