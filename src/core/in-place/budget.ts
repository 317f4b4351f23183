import { podsOf, type Settings } from "./settings.ts"

// biome-ignore lint/suspicious/noExplicitAny: what the server sends
type Json = Record<string, any>

type Kind = "Deployment" | "StatefulSet" | "DaemonSet"

/** How many pods may be down by the workload's own strategy. As its controller counts, but for a Deployment. */
export function ownUnavailable(kind: Kind, strategy: Json | undefined, replicas: number): number {
  if (kind === "Deployment" && strategy?.type === "Recreate") return replicas
  const value = strategy?.rollingUpdate?.maxUnavailable ?? (kind === "Deployment" ? "25%" : 1)
  return Math.min(replicas, counts[kind](value, replicas))
}

const counts: Readonly<Record<Kind, (value: number | string, replicas: number) => number>> = {
  /**
   * A share is at least one pod: the controller can make a pod first where the share rounds to none, and in place there
   * is none to make. A single pod is not stopped without being asked for.
   */
  Deployment(value, replicas) {
    if (typeof value === "number") return value
    const percent = percentOf(value)
    return replicas > 1 ? podsOf({ percent }, replicas) : Math.floor(percent / 100)
  },
  /** A share rounds down, and is at least one pod. */
  StatefulSet: (value, replicas) =>
    Math.max(1, typeof value === "number" ? value : Math.floor((replicas * percentOf(value)) / 100)),
  /** A share rounds up. With none, the controller makes the new pod first. */
  DaemonSet: (value, replicas) => (typeof value === "number" ? value : Math.ceil((replicas * percentOf(value)) / 100)),
}

const percentOf = (value: string) => Number.parseInt(value, 10) || 0

/** The smaller of both; where the workload's own is none, the annotation decides alone. */
export function unavailableOf(own: number, { maxUnavailable }: Settings, replicas: number): number {
  const asked = maxUnavailable && podsOf(maxUnavailable, replicas)
  if (asked === undefined) return own
  return own === 0 ? asked : Math.min(asked, own)
}
