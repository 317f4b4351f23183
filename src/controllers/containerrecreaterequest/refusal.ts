import type { ContainerRecreateRequestSpec, Refusal } from "#api/v1alpha1/containerrecreaterequest/index.ts"
import type { PodFacts } from "./pod.ts"

type Refused = { reason: Refusal; message: string }

/** Why a request cannot be carried out, from what only other objects show. The message names what to change. */
export function refusalOf(
  { podName, containers }: ContainerRecreateRequestSpec,
  pod: PodFacts | undefined,
): Refused | undefined {
  const name = `pod ${podName}`
  if (!pod) return { reason: "PodNotFound", message: `${name} is not in this namespace: write spec.podName of a pod` }
  if (pod.isTerminating) return { reason: "PodTerminating", message: `${name} is being deleted` }
  if (pod.hasEnded) return { reason: "PodEnded", message: `${name} has ended: its containers are not started again` }
  if (pod.isStatic)
    return { reason: "StaticPod", message: `${name} is static: change or touch its file on the node instead` }
  if (pod.isForWindows) return { reason: "WindowsPod", message: `${name} is for Windows, where no agent runs` }
  if (pod.node === "")
    return { reason: "PodNotScheduled", message: `${name} is not on a node yet: there is nothing to recreate` }
  for (const container of containers) {
    const refused = containerRefusal(container.name, pod)
    if (refused) return refused
  }
  return undefined
}

function containerRefusal(name: string, { containers, initContainers }: PodFacts): Refused | undefined {
  const found = containers.find(container => container.name === name)
  if (!found && initContainers.includes(name))
    return { reason: "InitContainer", message: `${name} is an init container: only containers can be recreated` }
  if (!found) {
    const names = containers.map(container => container.name).join(", ")
    return { reason: "ContainerNotFound", message: `the pod has no container ${name}: write one of ${names}` }
  }
  if (found.restartPolicy === "Never")
    return {
      reason: "RestartPolicyNever",
      message: `${name} has restartPolicy Never: once stopped, it would not be started again`,
    }
  if (found.id === "") return { reason: "ContainerNotStarted", message: `${name} has not been started yet` }
  return undefined
}
