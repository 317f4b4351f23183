import type { Container } from "./container-runtime.ts"

/** Labels that the kubelet puts on every container and sandbox. */
export const kubeletLabels = {
  podName: "io.kubernetes.pod.name",
  podNamespace: "io.kubernetes.pod.namespace",
  podUid: "io.kubernetes.pod.uid",
  containerName: "io.kubernetes.container.name",
} as const

/** Annotations that the kubelet puts on every container; the last three only where the pod's spec has such a field. */
export const kubeletAnnotations = {
  restartCount: "io.kubernetes.container.restartCount",
  hash: "io.kubernetes.container.hash",
  /** The whole handler, as JSON. */
  preStop: "io.kubernetes.container.preStopHandler",
  /** As JSON. */
  ports: "io.kubernetes.container.ports",
  /** In seconds. */
  terminationGracePeriod: "io.kubernetes.pod.terminationGracePeriod",
} as const

/** A preStop handler, as in the pod's spec. */
export type PreStop = {
  exec?: { command?: string[] }
  httpGet?: { path?: string; port: number | string; host?: string; scheme?: string; httpHeaders?: HttpHeader[] }
  sleep?: { seconds: number }
}
type HttpHeader = { name: string; value: string }
export type ContainerPort = { name?: string; containerPort: number }

/** What the kubelet recorded on a container, where no user of the API can change it. */
export type Recorded = {
  podName: string
  podNamespace: string
  podUid: string
  restartCount: number
  preStop?: PreStop
  ports: ContainerPort[]
  terminationGracePeriodSeconds?: number
}

/** Reads the kubelet's labels and annotations. `undefined`: the kubelet did not start this container. */
export function recordedBy({ labels, annotations }: Pick<Container, "labels" | "annotations">): Recorded | undefined {
  const podUid = labels[kubeletLabels.podUid]
  if (!podUid) return undefined
  const preStop = json<PreStop>(annotations[kubeletAnnotations.preStop])
  const grace = annotations[kubeletAnnotations.terminationGracePeriod]
  return {
    podUid,
    podName: labels[kubeletLabels.podName] ?? "",
    podNamespace: labels[kubeletLabels.podNamespace] ?? "",
    restartCount: Number(annotations[kubeletAnnotations.restartCount] ?? 0),
    ports: json<ContainerPort[]>(annotations[kubeletAnnotations.ports]) ?? [],
    ...(preStop && { preStop }),
    ...(grace !== undefined && { terminationGracePeriodSeconds: Number(grace) }),
  }
}

const json = <T>(text: string | undefined): T | undefined => (text === undefined ? undefined : JSON.parse(text))
