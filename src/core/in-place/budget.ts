import { podsOf, type Settings } from "./settings.ts"

// biome-ignore lint/suspicious/noExplicitAny: what the server sends
type Json = Record<string, any>

type Kind = "Deployment" | "StatefulSet" | "DaemonSet"

/**
 * How many pods may be down by the workload's own strategy. As its controller counts, but a share is at least one pod:
 * the controller of a Deployment can make a pod first where the share rounds to none, and in place there is none to make.
 * The single pod of a Deployment is not stopped without being asked for.
 */
export function ownUnavailable(kind: Kind, strategy: Json | undefined, replicas: number): number {
  if (kind === "Deployment" && strategy?.type === "Recreate") return replicas
  const value = strategy?.rollingUpdate?.maxUnavailable ?? (kind === "Deployment" ? "25%" : 1)
  if (typeof value === "number") return Math.min(value, replicas)
  const percent = Number.parseInt(value, 10)
  return kind !== "Deployment" || replicas > 1 ? podsOf({ percent }, replicas) : Math.floor(percent / 100)
}

/** The smaller of both; where the workload's own is none, the annotation decides alone. */
export function unavailableOf(own: number, { maxUnavailable }: Settings, replicas: number): number {
  const asked = maxUnavailable && podsOf(maxUnavailable, replicas)
  if (asked === undefined) return own
  return own === 0 ? asked : Math.min(asked, own)
}
