import type { Json, Obj } from "../../object.ts"
import { isChosen, untolerated } from "../fit.ts"
import type { Amounts } from "../node/resources.ts"
import { hostPorts, type NodeCount } from "./node-counts.ts"

/** Why a node does not fit, and whether it would fit without its other pods. */
export type Misfit = { reasons: string[]; couldPreempt: boolean }

const unschedulableTaint = { key: "node.kubernetes.io/unschedulable", effect: "NoSchedule" }

/** Why a pod does not fit on a node, in the words of the first scheduler plugin that rejects it; undefined: it fits. */
export function misfit(pod: Obj, requests: Amounts, count: NodeCount): Misfit | undefined {
  const { node, allocatable, taken } = count
  const never = (reason: string): Misfit => ({ reasons: [reason], couldPreempt: false })
  const tolerations = pod.spec.tolerations ?? []
  if (node.spec?.unschedulable && untolerated([unschedulableTaint], tolerations, ["NoSchedule"]))
    return never("node(s) were unschedulable")
  if (untolerated(node.spec?.taints, tolerations, ["NoSchedule", "NoExecute"]))
    return never("node(s) had untolerated taint(s)")
  if (!isChosen(pod.spec, node)) return never("node(s) didn't match Pod's node affinity/selector")
  if (hostPorts(pod).some(port => count.ports.has(port)))
    return { reasons: ["node(s) didn't have free ports for the requested pod ports"], couldPreempt: true }

  const reasons: string[] = []
  let couldPreempt = true
  if (count.pods.size + 1 > (allocatable.pods ?? Number.POSITIVE_INFINITY)) reasons.push("Too many pods")
  for (const [name, asked] of Object.entries(requests)) {
    if (asked === 0) continue
    const has = allocatable[name] ?? 0
    // Sums of fractions are inexact, so a millionth of a core is ignored.
    if (asked + (taken[name] ?? 0) <= has + 1e-6) continue
    reasons.push(`Insufficient ${name}`)
    if (asked > has + 1e-6) couldPreempt = false
  }
  return reasons.length > 0 ? { reasons, couldPreempt } : undefined
}

/** The scheduler's message if no node fits. */
export function explain(total: number, misfits: readonly Misfit[], apart: number): string {
  if (total === 0) return "no nodes available to schedule pods"
  const counts = new Map<string, number>()
  const raise = (reason: string, by = 1) => counts.set(reason, (counts.get(reason) ?? 0) + by)
  for (const { reasons } of misfits) for (const reason of reasons) raise(reason)
  if (apart > 0) raise("node(s) didn't satisfy plugin(s) [NodeAffinity]", apart)
  const victims = misfits.filter(({ couldPreempt }) => couldPreempt).length
  const hopes = new Map<string, number>()
  if (victims > 0) hopes.set("No preemption victims found for incoming pod", victims)
  if (total > victims) hopes.set("Preemption is not helpful for scheduling", total - victims)
  const list = (reasons: Map<string, number>) =>
    [...reasons]
      .map(([reason, count]) => `${count} ${reason}`)
      .sort()
      .join(", ")
  const none = `0/${total} nodes are available: `
  return `${none}${list(counts)}. no new claims to deallocate, preemption: ${none}${list(hopes)}.`
}

/** The nodes that a pod selects by name, as pods of a DaemonSet do; undefined: it does not. */
export function namedNodes(pod: Obj): string[] | undefined {
  const required = pod.spec.affinity?.nodeAffinity?.requiredDuringSchedulingIgnoredDuringExecution
  if (!required) return undefined
  const names: string[] = []
  for (const { matchFields = [] } of required.nodeSelectorTerms ?? []) {
    const named = matchFields.find(({ key, operator }: Json) => key === "metadata.name" && operator === "In")
    if (!named) return undefined
    names.push(...named.values)
  }
  return names
}

/** Lower is better. Spreading the pods of one owner weighs most, then free room. */
export function scoreOf(
  pod: Obj,
  { node, allocatable, taken, pods, owners }: NodeCount,
  owner: string | undefined,
): number {
  const share = (name: string) => (allocatable[name] ? Math.round((100 * (taken[name] ?? 0)) / allocatable[name]) : 0)
  const avoided = (node.spec?.taints ?? []).filter(({ effect }: Json) => effect === "PreferNoSchedule").length
  const together = owner ? (owners.get(owner) ?? 0) : 0
  const tolerated = avoided > 0 && untolerated(node.spec.taints, pod.spec.tolerations ?? [], ["PreferNoSchedule"])
  return (tolerated ? 1e9 : 0) + together * 1e6 + (share("cpu") + share("memory")) * 1e3 + pods.size
}
