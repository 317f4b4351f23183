import { stringify } from "yaml"
import type { pullMetrics } from "#agent/pull/metrics.ts"
import { failedEnds, stalledReasons } from "#api/v1alpha1/imagepulljob/reasons.ts"
import { pullFailureReasons } from "#api/v1alpha1/pull-fields.ts"
import { conditions } from "#api/v1alpha1/serviceimage/index.ts"
import { controllerName } from "#cli/manifests/names.ts"
import { controllers } from "#controllers/all.ts"
import type { alternateImageSourceMetrics } from "#controllers/alternateimagesource/metrics.ts"
import type { canaryMetrics } from "#controllers/canary/metrics.ts"
import type { containerRecreateRequestMetrics } from "#controllers/containerrecreaterequest/metrics.ts"
import type { imagePullJobMetrics } from "#controllers/imagepulljob/metrics.ts"
import type { inPlaceMetrics } from "#controllers/in-place/metrics.ts"
import type { Reason } from "#controllers/in-place/plan.ts"
import type { ServiceImageMetric } from "#controllers/serviceimage/metrics.ts"
import { agentMetrics } from "../kinds.generated.ts"

export type Alert = {
  name: string
  expr: string
  /** How long it must hold. Absent: the expression looks back far enough by itself. */
  for?: string
  severity: "critical" | "warning"
  /** What is wrong, with the labels of the expression. */
  summary: string
  /** What to do about it. */
  description: string
}

const ours = (metric: ServiceImageMetric) => `aim_${metric}`
const failover = (metric: keyof typeof alternateImageSourceMetrics) => `aim_${metric}`
const restarts = (metric: keyof typeof containerRecreateRequestMetrics) => `aim_${metric}`
const jobs = (metric: keyof typeof imagePullJobMetrics) => `aim_${metric}`
const pulls = (metric: keyof typeof pullMetrics) => `aim_${metric}`
const canaries = (metric: keyof typeof canaryMetrics) => `aim_${metric}`
const inPlace = (metric: keyof typeof inPlaceMetrics) => `aim_${metric}`
const looping = [...controllers.map(({ name }) => name), ...Object.keys(agentMetrics)].join("|")
const halted = conditions.Halted.reasons.join("|")
/** Of an agent, which has it as a label of every metric. */
const onItsNode = "{{ with $labels.node }} on node {{ . }}{{ end }}"

/** A day covers tiers that soak overnight. */
const longestRolloutSeconds = 86_400

/** Longer than a graceful end, a slow start and a few of the kubelet's back-offs together. */
const longestRestartSeconds = 1800

/** Held for one of these, a workload waits for a person: for another image, annotation or right, or for a release. */
const waitingForPerson: readonly (Reason | "Forbidden" | "Refused" | "NotListed")[] = [
  "ImageUnavailable",
  "NotInPlace",
  "NoBudget",
  "FellBackToRollingUpdate",
  "InvalidAnnotation",
  "Forbidden",
  "Refused",
  "NotListed",
]

/** Longer than most workloads take, pod after pod. */
const longestHoldSeconds = 7200

/** So many failed attempts in half an hour are more than one wrong image on a few nodes. */
const failedPullsMost = 10

export const alerts: readonly Alert[] = [
  {
    name: "AimRolloutHalted",
    expr: `max by (serviceimage, reason) (${ours("serviceimage_stalled")}{reason=~"${halted}"}) == 1`,
    for: "1m",
    severity: "critical",
    summary: "The rollout of {{ $labels.serviceimage }} has halted: {{ $labels.reason }}.",
    description:
      "A failure stopped it before it reached all objects. aim status shows which tier; correct the image or roll back.",
  },
  {
    name: "AimServiceImageStalled",
    expr: `max by (serviceimage, reason) (${ours("serviceimage_stalled")}{reason!~"${halted}"}) == 1`,
    for: "5m",
    severity: "warning",
    summary: "The ServiceImage {{ $labels.serviceimage }} does not continue by itself: {{ $labels.reason }}.",
    description:
      "Its spec cannot be carried out or is in conflict with another. The condition Stalled names the field.",
  },
  {
    name: "AimRolloutSlow",
    // Both, because a finished tier that is reopened belongs to an operation that may have started long ago.
    expr:
      `time() - max by (serviceimage) (${ours("serviceimage_upgrade_started_timestamp_seconds")}) > ${longestRolloutSeconds}` +
      ` and on (serviceimage) min by (serviceimage) (min_over_time(${ours("serviceimage_upgrading")}[${longestRolloutSeconds / 3600}h])) == 1`,
    for: "5m",
    severity: "warning",
    summary: "The rollout of {{ $labels.serviceimage }} has been under way for {{ $value | humanizeDuration }}.",
    description: "It may be paused, await an approval or soak longer than planned. aim status says what it waits for.",
  },
  {
    name: "AimIgnoredFailuresRising",
    expr: `max by (serviceimage) (delta(${ours("serviceimage_ignored_failures")}[30m])) > 0`,
    severity: "warning",
    summary: "More objects of {{ $labels.serviceimage }} fail than half an hour ago, and the rollout continues.",
    description: "None of them has failureHaltsUpdate. The status of their tier names some, with the reason.",
  },
  {
    name: "AimInstancesRegressed",
    expr: `max by (serviceimage, tier) (${ours("serviceimage_tier_instances_regressed")}) > 0`,
    for: "15m",
    severity: "warning",
    summary: "{{ $value }} objects of {{ $labels.serviceimage }}, tier {{ $labels.tier }}, are no longer healthy.",
    description:
      "They were up to date with the right image, so the rollout does not wait for them. Look at their pods.",
  },
  {
    name: "AimLostPods",
    expr: `max by (serviceimage) (${ours("serviceimage_lost_pods")}) > 0`,
    for: "15m",
    severity: "warning",
    summary: "{{ $value }} pods of {{ $labels.serviceimage }} are on nodes that do not answer.",
    description:
      "They may still run another image although the rollout is complete. Bring the nodes back or remove them.",
  },
  {
    name: "AimImageCannotBePulled",
    expr: `max by (namespace, alternateimagesource) (${failover("alternateimagesource_incidents")}) > 0`,
    for: "10m",
    severity: "critical",
    summary:
      "{{ $value }} containers of {{ $labels.namespace }} cannot be pulled, and ais/{{ $labels.alternateimagesource }} found no other source.",
    description:
      "All repositories may be down, none may have the image, or a check may forbid the others. aim why ais/NAME shows which.",
  },
  {
    name: "AimRunsFromElsewhere",
    expr: `max by (namespace, alternateimagesource) (${failover("alternateimagesource_switched")}) > 0`,
    for: "6h",
    severity: "warning",
    summary:
      "{{ $value }} containers of {{ $labels.namespace }} have not run from where their workload says for six hours.",
    description:
      "The registry may still be down. If it is back, the next version returns to it. aim verify ais/NAME asks all of them.",
  },
  {
    name: "AimSwitchesOften",
    expr: `sum by (namespace, alternateimagesource) (increase(${failover("alternateimagesource_switches_total")}[1h])) > 10`,
    severity: "warning",
    summary: "Images of {{ $labels.namespace }} switch repositories often.",
    description:
      "Several registries fail in turn. aim get ais/NAME -o yaml has the last switches; disabledRepositories leaves one out.",
  },
  {
    name: "AimAgentMissing",
    expr:
      `sum(increase(${restarts("containerrecreaterequest_completed_total")}{reason="AgentMissing"}[1h]))` +
      ` + sum(increase(${jobs("imagepulljob_agents_missing_total")}[1h])) > 0`,
    severity: "warning",
    summary: "A node was asked to restart a container or to pull an image, and no agent has answered there.",
    description:
      "aim agent does not run on it, or does not reach the API server. The request or the job names the node; kubectl get pods -n aim-agents -o wide shows the agents.",
  },
  {
    name: "AimRestartWaits",
    expr: `time() - max by (namespace) (${restarts("containerrecreaterequest_oldest_open_timestamp_seconds")}) > ${longestRestartSeconds}`,
    for: "5m",
    severity: "warning",
    summary:
      "A ContainerRecreateRequest of {{ $labels.namespace }} has not been complete for {{ $value | humanizeDuration }}.",
    description:
      "It may wait for another request, a drain, the limit of stops on its node or the kubelet's back-off, or the new container is not ready. aim why crr/NAME shows which.",
  },
  {
    name: "AimPullsFail",
    expr: `sum by (result) (increase(${pulls("agent_pulls_total")}{result=~"${Object.keys(pullFailureReasons).join("|")}"}[30m])) > ${failedPullsMost}`,
    severity: "warning",
    summary: "Nodes fail to pull images for ImagePullJobs: {{ $labels.result }}.",
    description:
      "aim get imagepulljobs -A lists jobs with failed nodes, and aim why has the message of the container runtime for each.",
  },
  {
    name: "AimPullJobStalled",
    expr: `max by (namespace, reason) (${jobs("imagepulljob_jobs")}{reason=~"${stalledReasons.join("|")}"}) > 0`,
    for: "10m",
    severity: "warning",
    summary: "{{ $value }} ImagePullJobs of {{ $labels.namespace }} do not go on by themselves: {{ $labels.reason }}.",
    description: "The condition Stalled of the job names what to change. aim get imagepulljobs lists the jobs.",
  },
  {
    name: "AimPullJobsFail",
    expr: `sum by (reason) (increase(${jobs("imagepulljob_completed_total")}{reason=~"${failedEnds.join("|")}"}[1h])) > 0`,
    severity: "warning",
    summary: "ImagePullJobs have ended without their image on every node: {{ $labels.reason }}.",
    description:
      "aim get imagepulljobs -A lists them, and aim why names nodes that failed. A job goes on when its spec is changed, for example to a longer deadline.",
  },
  {
    name: "AimInPlaceUpdateFailed",
    expr: `max by (namespace, kind) (${inPlace("in_place_held")}{reason="UpdateFailed"}) > 0`,
    for: "1m",
    severity: "critical",
    summary:
      "Pods of {{ $value }} held workloads ({{ $labels.kind }}) of {{ $labels.namespace }} fail with their new image.",
    description:
      "The update has stopped and the workload stays held. aim status names the pod and the reason; correct the image, change it back, or release the workload with aim release.",
  },
  {
    name: "AimInPlaceWaits",
    expr: `max by (namespace, kind, reason) (${inPlace("in_place_held")}{reason=~"${waitingForPerson.join("|")}"}) > 0`,
    for: "10m",
    severity: "warning",
    summary:
      "{{ $value }} held workloads ({{ $labels.kind }}) of {{ $labels.namespace }} do not go on by themselves: {{ $labels.reason }}.",
    description:
      "aim status names the image and its nodes, the annotation, the field or the missing right. aim release gives a workload back to its own controller.",
  },
  {
    name: "AimInPlaceSlow",
    expr: `time() - max by (namespace, kind) (${inPlace("in_place_oldest_held_timestamp_seconds")}) > ${longestHoldSeconds}`,
    for: "5m",
    severity: "warning",
    summary:
      "A workload ({{ $labels.kind }}) of {{ $labels.namespace }} has been held for {{ $value | humanizeDuration }}.",
    description:
      "Its own controller does nothing meanwhile. A PodDisruptionBudget may have no room, or its pods may take long to become ready. aim status says what the update waits for.",
  },
  {
    name: "AimCanaryFailed",
    // When the template is taken back after a failed run, the phase stays, and there is nothing left to do.
    expr: `max by (namespace, canary) (${canaries("canary_stalled")}) == 1 and on (namespace, canary) ${canaries("canary_phase")}{phase="Failed"}`,
    for: "1m",
    severity: "warning",
    summary: "A new revision of {{ $labels.namespace }}/{{ $labels.canary }} was not promoted.",
    description:
      "Requests go to the revision that ran before. aim why canary/NAME shows which check failed; correct the template, or try it again with aim resume canary/NAME.",
  },
  {
    name: "AimCanaryStalled",
    expr: `max by (namespace, canary, reason) (${canaries("canary_stalled")}) == 1 unless on (namespace, canary) ${canaries("canary_phase")}{phase="Failed"}`,
    for: "5m",
    severity: "warning",
    summary: "The Canary {{ $labels.namespace }}/{{ $labels.canary }} does not go on by itself: {{ $labels.reason }}.",
    description: "The condition Stalled names the field, the object or the right, and what to do about it.",
  },
  {
    name: "AimCanaryWaits",
    expr: `max by (namespace, canary, phase) (${canaries("canary_phase")}{phase=~"Waiting|WaitingPromotion"}) == 1`,
    for: "1h",
    severity: "warning",
    summary: "{{ $labels.namespace }}/{{ $labels.canary }} has waited for a hook or an approval for an hour.",
    description: "aim status canary/NAME names the gate; aim approve canary/NAME opens one that waits for a person.",
  },
  {
    name: "AimCanaryMetricErrors",
    expr: `max by (namespace, canary, metric) (${canaries("canary_metric_verdict")}{verdict="Error"}) == 1`,
    for: "10m",
    severity: "warning",
    summary: "Metric {{ $labels.metric }} of {{ $labels.namespace }}/{{ $labels.canary }} cannot be measured.",
    description:
      "The run holds its weight. The metric service may be down, or the query may give more than one number: aim why canary/NAME has its answer.",
  },
  {
    name: "AimCanarySlow",
    expr: `time() - max by (namespace, canary) (${canaries("canary_run_started_timestamp_seconds")}) > ${longestRolloutSeconds}`,
    for: "5m",
    severity: "warning",
    summary:
      "A run of {{ $labels.namespace }}/{{ $labels.canary }} has been under way for {{ $value | humanizeDuration }}.",
    description: "It may be paused, find no data or wait for a gate. aim status canary/NAME says what it waits for.",
  },
  {
    name: "AimCanaryAlertsFail",
    expr: `sum(increase(${canaries("canary_alerts_total")}{result="failed"}[1h])) > 0`,
    severity: "warning",
    summary: "Alerts or event hooks of Canaries were not accepted.",
    description:
      "The Canary has an Event AlertFailed with the cause, and aim get alertproviders -A shows providers that cannot be used.",
  },
  {
    name: "AimNoLeader",
    expr: `absent(leader_election_master_status{name="${controllerName}"} == 1)`,
    for: "2m",
    severity: "critical",
    summary: "No controller of aim leads, so no rollout continues.",
    description: `Look at the pods of ${controllerName} and at its Lease. With --no-leader-elect, leave this alert out.`,
  },
  {
    name: "AimWatchStale",
    expr: "max by (controller, resource, node) (aim_cache_staleness_seconds) > 300",
    for: "5m",
    severity: "warning",
    summary: `The API server has been silent about {{ $labels.resource }} for {{ $value | humanizeDuration }}${onItsNode}.`,
    description:
      "The controller decides from old data. Look at the API server, at the way to it and at the rights of the controller.",
  },
  {
    name: "AimReconcileErrors",
    expr: `sum by (controller, node) (rate(controller_runtime_reconcile_errors_total{controller=~"${looping}"}[10m])) > 0`,
    for: "15m",
    severity: "warning",
    summary: `The controller {{ $labels.controller }} keeps failing${onItsNode}.`,
    description: "Its log shows the error. It retries by itself, at growing intervals.",
  },
]

/** A rules file of Prometheus; its content is also the `spec` of a PrometheusRule. */
export function rulesFile(): string {
  const rules = alerts.map(({ name, expr, for: lasts, severity, summary, description }) => ({
    alert: name,
    expr,
    ...(lasts && { for: lasts }),
    labels: { severity },
    annotations: { summary, description },
  }))
  const text = stringify({ groups: [{ name: "aim", rules }] }, { lineWidth: 0 })
  return `# Generated from tools/generate/monitoring by npm run generate.\n${text}`
}
