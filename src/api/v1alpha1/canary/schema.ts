import type { z } from "zod"
import { defineKind, type ObjectOf } from "../../kind.ts"
import { namesOf } from "../../names.ts"
import { spec } from "./spec.ts"
import { status } from "./status.ts"

export const Canary = defineKind({
  ...namesOf("Canary"),
  categories: ["all"],
  description:
    "A Canary gives a new revision of a workload requests step by step, and promotes it when it proves good.",
  // Flagger's names and order, because scripts read them.
  printerColumns: [
    { name: "Status", type: "string", jsonPath: ".status.phase" },
    { name: "Weight", type: "string", jsonPath: ".status.canaryWeight" },
    { name: "Suspended", type: "boolean", jsonPath: ".spec.suspend", priority: 1 },
    { name: "FailedChecks", type: "string", jsonPath: ".status.failedChecks", priority: 1 },
    { name: "Interval", type: "string", jsonPath: ".spec.analysis.interval", priority: 1 },
    { name: "Mirror", type: "boolean", jsonPath: ".spec.analysis.mirror", priority: 1 },
    { name: "StepWeight", type: "string", jsonPath: ".spec.analysis.stepWeight", priority: 1 },
    { name: "StepWeights", type: "string", jsonPath: ".spec.analysis.stepWeights", priority: 1 },
    { name: "MaxWeight", type: "string", jsonPath: ".spec.analysis.maxWeight", priority: 1 },
    { name: "LastTransitionTime", type: "string", jsonPath: ".status.lastTransitionTime" },
  ],
  spec,
  status,
})

export type Canary = ObjectOf<typeof Canary>
export type CanarySpec = Canary["spec"]
/** What a user may write: fields with a default may be left out. */
export type CanarySpecInput = z.input<typeof spec>
export type CanaryStatus = NonNullable<Canary["status"]>
export type Service = NonNullable<CanarySpec["service"]>
export type Analysis = CanarySpec["analysis"]
export type Metric = Analysis["metrics"][number]
export type Webhook = Analysis["webhooks"][number]
export type Alert = Analysis["alerts"][number]
export type SessionAffinity = NonNullable<Analysis["sessionAffinity"]>
export type Run = NonNullable<CanaryStatus["run"]>
export type Revision = Run["target"]
export type MetricStatus = Run["metrics"][number]
export type Gate = Run["gates"][number]
export type EndedRun = CanaryStatus["history"][number]
export type Condition = CanaryStatus["conditions"][number]
