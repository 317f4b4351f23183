import { type Json, type Script, topic, type Watch } from "../harness/script.ts"
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

/** Creates it, and shows all that becomes of it. */
async function scale(on: Script): Promise<Watch> {
  const watch = await on.watch("horizontalpodautoscalers")
  await on.quietly.create("horizontalpodautoscalers", scaler())
  return watch
}

/** Waits until the autoscaler says a reason, and notes its status then: its next look says something else. */
async function says(on: Script, watch: Watch, reason: string) {
  const said = await watch.until(`it says ${reason}`, ({ object }) =>
    object.status?.conditions?.some((each: Json) => each.reason === reason),
  )
  const { status } = said.object
  on.note("status", { ...status, lastScaleTime: status.lastScaleTime ? "TIME" : undefined })
}

export const autoscalers = topic(
  "autoscalers",
  "controllers",
  {
    "the minimum is kept without metrics": async on => {
      await on.quietly.create("deployments", web({ "spec.replicas": 1 }))
      const watch = await scale(on)
      await sized(on, 2)
      await says(on, watch, "SucceededRescale")
    },
    "the maximum is kept without metrics": async on => {
      await on.quietly.create("deployments", web({ "spec.replicas": 4 }))
      const watch = await scale(on)
      await sized(on, 3)
      await says(on, watch, "SucceededRescale")
    },
    "between the bounds it says that it knows nothing": async on => {
      await on.quietly.create("deployments", web({ "spec.replicas": 2 }))
      const watch = await scale(on)
      await says(on, watch, "FailedGetResourceMetric")
    },
    "a size of zero is left alone": async on => {
      await on.quietly.create("deployments", web({ "spec.replicas": 0 }))
      const watch = await scale(on)
      await says(on, watch, "ScalingDisabled")
    },
    "a target that is not there": async on => {
      const watch = await scale(on)
      await says(on, watch, "FailedGetScale")
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
    "bounds that are changed count at once": async on => {
      await on.quietly.create("deployments", web({ "spec.replicas": 2 }))
      const watch = await scale(on)
      await says(on, watch, "FailedGetResourceMetric")
      await on.quietly.patch("horizontalpodautoscalers", "web", "merge", { spec: { minReplicas: 3, maxReplicas: 4 } })
      await sized(on, 3)
      await on.quietly.patch("horizontalpodautoscalers", "web", "merge", { spec: { minReplicas: 1, maxReplicas: 2 } })
      await sized(on, 2)
    },
    "the maximum is kept also where scaling down is off": async on => {
      await on.quietly.create("deployments", web({ "spec.replicas": 4 }))
      const behavior = { scaleDown: { selectPolicy: "Disabled" } }
      await on.quietly.create("horizontalpodautoscalers", scaler({ behavior }))
      await sized(on, 3)
    },
    "one that is deleted leaves the size as it is, and no longer minds it": async on => {
      await on.quietly.create("deployments", web({ "spec.replicas": 1 }))
      await on.quietly.create("horizontalpodautoscalers", scaler())
      await sized(on, 2)
      await on.quietly.remove("horizontalpodautoscalers", "web")
      await on.untilObject("horizontalpodautoscalers", "web", object => object === undefined)
      await on.quietly.patch("deployments/scale", "web", "merge", { spec: { replicas: 1 } })
      await sized(on, 1)
    },
  },
  { withManagedFields: false, runsPods: true },
)
