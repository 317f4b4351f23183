import { controllerName } from "#cli/manifests/names.ts"
import { type ServiceImageMetric, serviceImageMetrics } from "#controllers/serviceimage/metrics.ts"
import type { Dashboard, Query, Row } from "./dashboard.ts"

/** After a hand-over two processes export the same for a moment; the labels of the process are left out. */
const select = (metric: ServiceImageMetric) =>
  `max by (${serviceImageMetrics[metric].labels.join(", ")}) (aim_${metric}{serviceimage=~"$serviceimage"})`
const show = (metric: ServiceImageMetric, legend: string): Query => ({ expr: select(metric), legend })
const since = (metric: ServiceImageMetric, legend = "{{serviceimage}}"): Query => ({
  expr: `time() - ${select(metric)}`,
  legend,
})
const perTier = (metric: ServiceImageMetric) => show(metric, "{{serviceimage}} {{tier}}")

export const rows: readonly Row[] = [
  {
    title: "Upgrade",
    panels: [
      {
        title: "Upgrading",
        description: "Whether an upgrade is under way, including a paused or halted one.",
        type: "stat",
        width: 6,
        words: { 0: "no", 1: "upgrading" },
        queries: [show("serviceimage_upgrading", "{{serviceimage}}")],
      },
      {
        title: "Since the upgrade started",
        description: "The current one, or the last.",
        type: "stat",
        width: 6,
        unit: "s",
        queries: [since("serviceimage_upgrade_started_timestamp_seconds")],
      },
      {
        title: "Since an upgrade ended",
        description: "Since everything that counted was last up to date.",
        type: "stat",
        width: 6,
        unit: "s",
        queries: [since("serviceimage_upgrade_ended_timestamp_seconds")],
      },
      {
        title: "Stalled",
        description: "Whether a person must act, and why.",
        type: "stat",
        width: 6,
        words: { 0: "no", 1: "stalled" },
        queries: [show("serviceimage_stalled", "{{serviceimage}} {{reason}}")],
      },
      {
        title: "Instances",
        description: "The number to be updated only falls; new objects do not count.",
        type: "timeseries",
        width: 12,
        queries: [
          show("serviceimage_instances_up_to_date", "{{serviceimage}} up to date"),
          show("serviceimage_instances_to_update", "{{serviceimage}} to be updated"),
          show("serviceimage_instances", "{{serviceimage}} managed"),
        ],
      },
      {
        title: "Left alone, failed, lost",
        description: "Objects and pods that a finished upgrade does not cover.",
        type: "timeseries",
        width: 12,
        queries: [
          show("serviceimage_instances_unmanaged", "{{serviceimage}} unmanaged"),
          show("serviceimage_ignored_failures", "{{serviceimage}} ignored failures"),
          show("serviceimage_instances_regressed", "{{serviceimage}} regressed"),
          show("serviceimage_lost_pods", "{{serviceimage}} pods on lost nodes"),
        ],
      },
      {
        title: "Old pods behind Services",
        description:
          "Pods with another version that a Service led to when an upgrade was complete; empty where none were found.",
        type: "timeseries",
        width: 12,
        queries: [show("serviceimage_old_endpoints", "{{serviceimage}}")],
      },
    ],
  },
  {
    title: "Current priority",
    panels: [
      {
        title: "Current priority",
        description: "The priority being rolled out; when complete, the lowest.",
        type: "stat",
        width: 6,
        queries: [show("serviceimage_current_priority", "{{serviceimage}}")],
      },
      {
        title: "Since the current priority started",
        description: "Since the priority last changed.",
        type: "stat",
        width: 6,
        unit: "s",
        queries: [since("serviceimage_current_priority_started_timestamp_seconds")],
      },
      {
        title: "Instances of the current priority",
        description: "In all tiers of this priority; the line jumps when the next priority begins.",
        type: "timeseries",
        width: 12,
        queries: [
          show("serviceimage_current_priority_instances_up_to_date", "{{serviceimage}} up to date"),
          show("serviceimage_current_priority_instances_to_update", "{{serviceimage}} to be updated"),
          show("serviceimage_current_priority_instances", "{{serviceimage}} managed"),
          show("serviceimage_current_priority_instances_unmanaged", "{{serviceimage}} unmanaged"),
          show("serviceimage_current_priority_ignored_failures", "{{serviceimage}} ignored failures"),
        ],
      },
    ],
  },
  {
    title: "Tiers",
    panels: [
      {
        title: "Share up to date",
        description: "Of the managed objects of each tier.",
        type: "bargauge",
        width: 12,
        unit: "percent",
        queries: [
          {
            expr: `100 * ${select("serviceimage_tier_instances_up_to_date")} / (${select("serviceimage_tier_instances")} > 0)`,
            legend: "{{serviceimage}} {{tier}}",
          },
        ],
      },
      {
        title: "Priority of each tier",
        description: "Higher goes first; equal priorities run together.",
        type: "bargauge",
        width: 12,
        queries: [perTier("serviceimage_tier_priority")],
      },
      {
        title: "To be updated, by tier",
        description: "Objects that each tier still has to update.",
        type: "timeseries",
        width: 12,
        queries: [perTier("serviceimage_tier_instances_to_update")],
      },
      {
        title: "Given the image, by tier",
        description: "Objects with the latest image in their spec, up to date or not yet.",
        type: "timeseries",
        width: 12,
        queries: [perTier("serviceimage_tier_instances_updated")],
      },
      {
        title: "Left alone and failed, by tier",
        description: "Regressed ones were up to date and are no longer healthy.",
        type: "timeseries",
        width: 12,
        queries: [
          show("serviceimage_tier_instances_unmanaged", "{{serviceimage}} {{tier}} unmanaged"),
          show("serviceimage_tier_ignored_failures", "{{serviceimage}} {{tier}} ignored failures"),
          show("serviceimage_tier_instances_regressed", "{{serviceimage}} {{tier}} regressed"),
        ],
      },
      {
        title: "Failures by reason",
        description: "The same words as in the status.",
        type: "timeseries",
        width: 12,
        queries: [show("serviceimage_tier_failures", "{{serviceimage}} {{tier}} {{reason}}")],
      },
      {
        title: "Failed checks, by tier",
        description: "Rounds of a tier's analysis in which a metric was bad or a hook said no, in this upgrade.",
        type: "timeseries",
        width: 12,
        queries: [perTier("serviceimage_tier_failed_checks")],
      },
      {
        title: "Time since a tier was judged",
        description: "By its analysis, whatever that found. After the tier is complete it only grows.",
        type: "timeseries",
        width: 12,
        unit: "s",
        queries: [since("serviceimage_tier_judged_timestamp_seconds", "{{serviceimage}} {{tier}}")],
      },
      {
        title: "Verdicts that are not good, by tier",
        description: "BadMetric and HookSaidNo count to the threshold; NoData and MetricError hold the tier.",
        type: "timeseries",
        width: 12,
        queries: [
          {
            expr: select("serviceimage_tier_verdict").replace("{", '{verdict!="Good", '),
            legend: "{{serviceimage}} {{tier}} {{verdict}}",
          },
        ],
      },
    ],
  },
  {
    title: "Controller",
    panels: [
      {
        title: "Stamps per second",
        description: "Images written to objects.",
        type: "timeseries",
        width: 8,
        unit: "ops",
        queries: [
          {
            expr: 'sum by (serviceimage) (rate(aim_serviceimage_stamps_total{serviceimage=~"$serviceimage"}[$__rate_interval]))',
            legend: "{{serviceimage}}",
          },
        ],
      },
      {
        title: "Upgrades that ended",
        description: "In the time shown, by how they ended.",
        type: "stat",
        width: 8,
        queries: [
          {
            expr: 'sum by (serviceimage, outcome) (increase(aim_serviceimage_rollouts_total{serviceimage=~"$serviceimage"}[$__range])) > 0',
            legend: "{{serviceimage}} {{outcome}}",
          },
        ],
      },
      {
        title: "Leaders",
        description: "One process leads; the others stand by.",
        type: "stat",
        width: 8,
        queries: [{ expr: `sum(leader_election_master_status{name="${controllerName}"})`, legend: "leaders" }],
      },
      {
        title: "Silence of watches",
        description: "Time since the API server last sent anything about a resource.",
        type: "timeseries",
        width: 8,
        unit: "s",
        queries: [
          {
            expr: "max by (controller, resource) (aim_cache_staleness_seconds)",
            legend: "{{controller}} {{resource}}",
          },
        ],
      },
      {
        title: "Reconciles per second",
        description: "Of ServiceImages, by result.",
        type: "timeseries",
        width: 8,
        unit: "ops",
        queries: [
          {
            expr: 'sum by (result) (rate(controller_runtime_reconcile_total{controller="serviceimage"}[$__rate_interval]))',
            legend: "{{result}}",
          },
        ],
      },
      {
        title: "Memory",
        description: "Resident memory of the leader and of those that stand by.",
        type: "timeseries",
        width: 8,
        unit: "bytes",
        queries: [
          {
            expr: `process_resident_memory_bytes and on (instance) leader_election_master_status{name="${controllerName}"}`,
            legend: "{{instance}}",
          },
        ],
      },
    ],
  },
]

export const serviceImageDashboard: Dashboard = {
  uid: "aim-serviceimage",
  title: "AutoImageManager: ServiceImages",
  variables: [{ name: "serviceimage", label: "ServiceImage", metric: "aim_serviceimage_upgrading" }],
  rows,
}
