import type { AlternateImageSourceStatus } from "#api/v1alpha1/alternateimagesource/index.ts"
import type { Resolution } from "#registry/index.ts"
import type { MetricFactory } from "#runtime/metrics.ts"
import type { Acted } from "./apply.ts"
import type { Decision } from "./decide.ts"

/** Everything an AlternateImageSource says to Prometheus, without the prefix `aim_`. */
export const alternateImageSourceMetrics = {
  alternateimagesource_incidents: {
    type: "gauge",
    unit: "containers",
    labels: ["namespace", "alternateimagesource"],
    help: "Containers of workloads that cannot be pulled from where their workload says, and run nowhere else yet.",
  },
  alternateimagesource_switched: {
    type: "gauge",
    unit: "containers",
    labels: ["namespace", "alternateimagesource"],
    help: "Containers of workloads that run from another repository than their workload names.",
  },
  alternateimagesource_switches_total: {
    type: "counter",
    unit: "switches",
    labels: ["namespace", "alternateimagesource", "reason"],
    help: "Switches to another repository, by why the one before could not serve.",
  },
  alternateimagesource_repairs_total: {
    type: "counter",
    unit: "pods",
    labels: ["namespace", "alternateimagesource"],
    help: "Pods that were given another source in place.",
  },
  alternateimagesource_probes_total: {
    type: "counter",
    unit: "probes",
    labels: ["result"],
    help: "Answers of registries that were asked for an image, by what they said.",
  },
} as const

export type AlternateImageSourceMetrics = {
  publish(key: string, status: AlternateImageSourceStatus, decisions: readonly Decision[], acted: Acted): void
  probed(said: Resolution): void
  forget(key: string): void
}

export function createAlternateImageSourceMetrics(factory: MetricFactory | undefined): AlternateImageSourceMetrics {
  if (!factory) return { publish: () => {}, probed: () => {}, forget: () => {} }
  const declared = alternateImageSourceMetrics
  const gauge = (name: "alternateimagesource_incidents" | "alternateimagesource_switched") =>
    factory.gauge({ name, ...declared[name] })
  const counter = (name: keyof typeof declared) => factory.counter({ name, ...declared[name] })
  const incidents = gauge("alternateimagesource_incidents")
  const switched = gauge("alternateimagesource_switched")
  const switches = counter("alternateimagesource_switches_total")
  const repairs = counter("alternateimagesource_repairs_total")
  const probes = counter("alternateimagesource_probes_total")
  /** Reasons counted so far, to take the series away with their object. */
  const counted = new Map<string, Set<string>>()

  return {
    publish(key, status, decisions, { accepted }) {
      const labels = labelsOf(key)
      incidents.set(labels, status.incidents)
      switched.set(labels, status.switched)
      const reasons = counted.get(key) ?? new Set()
      counted.set(key, reasons)
      for (const decision of decisions) {
        const count = accepted.get(decision) ?? 0
        if (count === 0) continue
        repairs.add(labels, decision.repairs.length > 0 ? count : 0)
        if (!decision.step) continue
        reasons.add(decision.step.reason)
        switches.add({ ...labels, reason: decision.step.reason })
      }
    },
    probed: said => probes.add({ result: said.ok ? "Found" : said.class }),
    forget(key) {
      const labels = labelsOf(key)
      for (const gauge of [incidents, switched]) gauge.remove(labels)
      repairs.remove(labels)
      for (const reason of counted.get(key) ?? []) switches.remove({ ...labels, reason })
      counted.delete(key)
    },
  }
}

const labelsOf = (key: string) => {
  const [namespace = "", alternateimagesource = ""] = key.split("/")
  return { namespace, alternateimagesource }
}
