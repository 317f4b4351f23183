import { kubeletAnnotations, kubeletLabels } from "#runtime/cri/kubelet-keys.ts"
import type { Json } from "../../object.ts"
import { fnv32 } from "../kube-controllers/hash.ts"
import type { Container } from "./container.ts"

type Strings = Record<string, string>

/** The labels that the kubelet gives to a container. */
export function labelsOf({ name, source: { pod } }: Container): Strings {
  return {
    [kubeletLabels.containerName]: name,
    [kubeletLabels.podName]: pod.name,
    [kubeletLabels.podNamespace]: pod.namespace,
    [kubeletLabels.podUid]: pod.uid,
  }
}

/** The annotations that the kubelet gives to a container: all that it must know of it after a restart of its own. */
export function annotationsOf({ source: { pod, container }, restartCount }: Container): Strings {
  const { ports = [], lifecycle, terminationMessagePath, terminationMessagePolicy } = container
  const { deletionGracePeriodSeconds: deletion, spec } = pod
  const grace = spec.terminationGracePeriodSeconds
  return {
    [kubeletAnnotations.hash]: containerHash(container),
    ...(ports.length > 0 && { [kubeletAnnotations.ports]: JSON.stringify(ports.map(inGoOrder)) }),
    ...(lifecycle?.preStop && { [kubeletAnnotations.preStop]: JSON.stringify(lifecycle.preStop) }),
    [kubeletAnnotations.restartCount]: String(restartCount),
    "io.kubernetes.container.terminationMessagePath": terminationMessagePath ?? "/dev/termination-log",
    "io.kubernetes.container.terminationMessagePolicy": terminationMessagePolicy ?? "File",
    ...(deletion !== undefined && { "io.kubernetes.pod.deletionGracePeriod": String(deletion) }),
    ...(grace !== undefined && { [kubeletAnnotations.terminationGracePeriod]: String(grace) }),
  }
}

const inGoOrder = ({ name, hostPort, containerPort, protocol, hostIP }: Json) => ({
  ...(name && { name }),
  ...(hostPort && { hostPort }),
  containerPort,
  ...(protocol && { protocol }),
  ...(hostIP && { hostIP }),
})

/** Of name and image alone, as since 1.31: FNV-1a of the JSON, in the form in which Go's spew prints its bytes. */
export function containerHash({ name, image }: Json): string {
  const bytes = new TextEncoder().encode(JSON.stringify({ image, name }))
  return fnv32(`([]uint8)[${bytes.join(" ")}]`).toString(16)
}
