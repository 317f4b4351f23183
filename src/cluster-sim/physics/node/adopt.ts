import { type Instant, parseInstant } from "#lib/instant.ts"
import type { Json, Obj } from "../../object.ts"
import { parseImage } from "./image-reference.ts"
import type { NodeImages } from "./images.ts"
import { specs } from "./pod-spec.ts"
import type { Container, Runtime } from "./pod-status.ts"
import type { Registries } from "./registries.ts"

type Kept = Parameters<NodeImages["keep"]>

/** The containers in a pod's status, with their images, if a registry still has them. */
export function containersOf(pod: Obj, registries: Registries, now: Instant): { container: Container; image?: Kept }[] {
  const { initContainerStatuses = [], containerStatuses = [] } = pod.status
  return [...initContainerStatuses, ...containerStatuses].flatMap((said: Json) => {
    const { running, terminated = said.lastState?.terminated } = said.state ?? {}
    const state = running ?? terminated
    if (!said.containerID || !state) return []
    const reference = parseImage(said.image)
    const found = "invalid" in reference ? undefined : registries.find(reference)
    const spec = [...specs(pod).init, ...specs(pod).main].find(({ name }) => name === said.name)
    const container: Container = {
      name: said.name,
      id: said.containerID.replace(/^.*:\/\//, ""),
      image: spec?.image ?? said.image,
      imageName: said.image,
      imageId: said.imageID,
      restartCount: said.restartCount,
      behaviour: found?.behaviour ?? {},
      startedAt: parseInstant(state.startedAt) ?? now,
      state: running ? "running" : "exited",
      ...(terminated && {
        exitCode: terminated.exitCode,
        reason: terminated.reason,
        finishedAt: parseInstant(terminated.finishedAt) ?? now,
      }),
      ...(said.started && { startup: true }),
      ...(said.ready && { readiness: true }),
    }
    if ("invalid" in reference || !found) return [{ container }]
    return [{ container, image: [reference, found] satisfies Kept }]
  })
}

/** The sandbox that a pod's status implies. */
export function sandboxOf({ status }: Obj): Runtime["sandbox"] {
  const isReady = status.conditions?.some(
    ({ type, status: is }: Json) => type === "PodReadyToStartContainers" && is === "True",
  )
  return isReady ? { isReady: true, ip: status.podIP } : undefined
}
