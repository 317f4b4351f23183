import type { AlternateImageSourceStatus } from "#api/v1alpha1/alternateimagesource/index.ts"
import type { Resolution } from "#registry/index.ts"
import type { MetricFactory } from "#runtime/metrics.ts"
import { seriesOf } from "#runtime/series.ts"
import type { Acted } from "./apply.ts"
import type { Decision } from "./group.ts"

/** Every metric of an AlternateImageSource, without the prefix `aim_`. */
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
  publish(
    key: string,
    status: AlternateImageSourceStatus,
    decisions: readonly Decision[],
    acted: Pick<Acted, "accepted">,
  ): void
  probed(said: Resolution): void
  forget(key: string): void
}

export function createAlternateImageSourceMetrics(factory: MetricFactory | undefined): AlternateImageSourceMetrics {
  const { alternateimagesource_probes_total: probed, ...ofObjects } = alternateImageSourceMetrics
  const series = seriesOf(factory, ofObjects)
  const probes = factory?.counter({ name: "alternateimagesource_probes_total", ...probed })
  return {
    publish(key, { incidents, switched }, decisions, { accepted }) {
      const labels = labelsOf(key)
      series.publish(key, [
        { metric: "alternateimagesource_incidents", labels, value: incidents },
        { metric: "alternateimagesource_switched", labels, value: switched },
      ])
      for (const decision of decisions) {
        const count = accepted.get(decision) ?? 0
        if (count === 0) continue
        series.add(key, "alternateimagesource_repairs_total", labels, decision.repairs.length > 0 ? count : 0)
        if (decision.step)
          series.add(key, "alternateimagesource_switches_total", { ...labels, reason: decision.step.reason })
      }
    },
    probed: said => probes?.add({ result: said.ok ? "Found" : said.class }),
    forget: series.forget,
  }
}

const labelsOf = (key: string) => {
  const [namespace = "", alternateimagesource = ""] = key.split("/")
  return { namespace, alternateimagesource }
}
