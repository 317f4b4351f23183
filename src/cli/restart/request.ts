import { ContainerRecreateRequest } from "#api/v1alpha1/containerrecreaterequest/index.ts"
import type { KubeObject } from "#runtime/resource.ts"
import { Failure } from "../command.ts"
import { restartLabel } from "./read.ts"

// biome-ignore lint/suspicious/noExplicitAny: what the server sends
type Json = any

export type How = {
  /** Which restart: requests of an interrupted one are found by it. */
  id: string
  /** Without names, all containers of a pod. */
  containers: readonly string[]
  /** How long a new container must run, as the workload says of its pods. */
  minReadySeconds: number
}

/** So long an interrupted restart can be continued. */
const keptSeconds = 86_400
/** The kubelet's longest back-off is five minutes. */
const patienceSeconds = 600
const longestSeconds = 7 * 86_400

/** The request for one pod. Its name follows from restart, pod and attempt, so that a repeated write makes no second. */
export function requestFor(pod: KubeObject, attempt: number, { id, containers, minReadySeconds }: How) {
  const { name, namespace } = pod.metadata
  const { spec } = pod as Json
  const suffix = attempt === 1 ? id : `${id}-${attempt}`
  const minStartedSeconds = Math.min(minReadySeconds, 86_400)
  const allowed = patienceSeconds + minStartedSeconds + (spec?.terminationGracePeriodSeconds ?? 30)
  return {
    apiVersion: ContainerRecreateRequest.apiVersion,
    kind: ContainerRecreateRequest.kind,
    metadata: {
      name: `${name.slice(0, 250 - suffix.length).replace(/[.-]+$/, "")}-${suffix}`,
      ...(namespace !== undefined && { namespace }),
      labels: { [restartLabel]: id },
    },
    spec: {
      podName: name,
      containers: containersOf(pod, containers).map(container => ({ name: container })),
      strategy: { minStartedSeconds },
      activeDeadlineSeconds: Math.min(allowed, longestSeconds),
      ttlSecondsAfterFinished: keptSeconds,
    },
  }
}

/** The named containers, which the pod must have, or all. */
export function containersOf(pod: KubeObject, wanted: readonly string[]): string[] {
  const known: string[] = ((pod as Json).spec?.containers ?? []).map(({ name }: Json) => name)
  const missing = wanted.find(name => !known.includes(name))
  if (missing !== undefined)
    throw new Failure(`pod ${pod.metadata.name} has no container ${missing}: write ${known.join(" or ")}`)
  return wanted.length > 0 ? [...wanted] : known
}
