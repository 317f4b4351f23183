import { readFileSync } from "node:fs"
import type { Cluster } from "#tools/kube/cluster.ts"
import { familyOf } from "./cores.ts"

/** The programs of a cluster whose CPU is compared. The kernel keeps fifteen characters of a name. */
const names = ["kube-apiserver", "etcd", "kube-controller", "kube-scheduler"] as const
export type Cpu = Readonly<Record<(typeof names)[number], number>>

/** Seconds of user and system time so far, read from outside. */
export function cpuOf({ pid }: Pick<Cluster, "pid">): Cpu {
  const seconds: Record<string, number> = Object.fromEntries(names.map(name => [name, 0]))
  for (const each of familyOf(pid)) {
    const stat = readFileSync(`/proc/${each}/stat`, "utf8")
    const name = stat.slice(stat.indexOf("(") + 1, stat.lastIndexOf(")"))
    const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ")
    if (name in seconds) seconds[name]! += (Number(fields[11]) + Number(fields[12])) / ticksPerSecond
  }
  return seconds as Cpu
}

export const cpuBetween = (before: Cpu, after: Cpu): Cpu =>
  Object.fromEntries(names.map(name => [name, after[name] - before[name]])) as Cpu

/** Of Linux on every common machine. */
const ticksPerSecond = 100
