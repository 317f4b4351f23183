import { type Json, type Script, topic } from "../harness/script.ts"
import { hold, second } from "./in-place-steps.ts"
import { done, web } from "./workload-steps.ts"

const scaler = (spec: Json = {}): Json => ({
  metadata: { name: "web" },
  spec: {
    scaleTargetRef: { apiVersion: "apps/v1", kind: "Deployment", name: "web" },
    minReplicas: 2,
    maxReplicas: 3,
    ...spec,
  },
})

const sized = (on: Script, replicas: number) =>
  on.untilObject(
    "deployments",
    "web",
    ({ spec, status }) => spec.replicas === replicas && (status.replicas ?? 0) === replicas,
  )

/** Waits until the autoscaler says a reason, and notes its status. */
async function says(on: Script, reason: string) {
  const { status } = await on.untilObject("horizontalpodautoscalers", "web", ({ status }) =>
    status.conditions?.some((each: Json) => each.reason === reason),
  )
  on.note("status", { ...status, lastScaleTime: status.lastScaleTime ? "TIME" : undefined })
}

export const autoscalers = topic(
  "autoscalers",
  "controllers",
  {
    "the minimum is kept without metrics": async on => {
      await on.quietly.create("deployments", web({ "spec.replicas": 1 }))
      await on.quietly.create("horizontalpodautoscalers", scaler())
      await sized(on, 2)
      await says(on, "SucceededRescale")
    },
    "the maximum is kept without metrics": async on => {
      await on.quietly.create("deployments", web({ "spec.replicas": 4 }))
      await on.quietly.create("horizontalpodautoscalers", scaler())
      await sized(on, 3)
      await says(on, "SucceededRescale")
    },
    "between the bounds it says that it knows nothing": async on => {
      await on.quietly.create("deployments", web({ "spec.replicas": 2 }))
      await on.quietly.create("horizontalpodautoscalers", scaler())
      await says(on, "FailedGetResourceMetric")
    },
    "a size of zero is left alone": async on => {
      await on.quietly.create("deployments", web({ "spec.replicas": 0 }))
      await on.quietly.create("horizontalpodautoscalers", scaler())
      await says(on, "ScalingDisabled")
    },
    "a target that is not there": async on => {
      await on.quietly.create("horizontalpodautoscalers", scaler())
      await says(on, "FailedGetScale")
    },
    "a paused deployment with a held template is scaled with its running replica set": async on => {
      await on.quietly.create("deployments", web({ "spec.replicas": 1 }))
      await done(on)
      await hold(on, second)
      await on.quietly.create("horizontalpodautoscalers", scaler())
      await sized(on, 2)
      const { items } = await on.quietly.list("replicasets")
      on.note(
        "replica sets",
        items.map(({ spec }: Json) => spec.replicas),
      )
    },
  },
  { withManagedFields: false, runsPods: true },
)
