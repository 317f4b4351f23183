import { type Instant, parseInstant } from "#lib/instant.ts"
import type { Json, Obj } from "../../object.ts"
import type { Container, ContainerSource, NodeRuntime } from "../container-runtime/index.ts"
import { parseImage } from "./image-reference.ts"
import { specs } from "./pod-spec.ts"
import type { Registries } from "./registries.ts"

type Kept = Parameters<NodeRuntime["images"]["keep"]>

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
      source: sourceOf(pod, spec ?? { name: said.name, image: said.image }),
      createdAt: parseInstant(state.startedAt) ?? now,
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

/** Whether a pod's status implies that it has a sandbox. */
export const hasSandbox = ({ status }: Obj): boolean =>
  status.conditions?.some(({ type, status: is }: Json) => type === "PodReadyToStartContainers" && is === "True") ??
  false

/** What a container keeps of its pod. */
export function sourceOf({ metadata, spec }: Obj, container: Json): ContainerSource {
  const { name, namespace = "", uid, deletionGracePeriodSeconds: deletion } = metadata
  const pod = { name, namespace, uid, spec, ...(deletion !== undefined && { deletionGracePeriodSeconds: deletion }) }
  return { pod, container }
}
