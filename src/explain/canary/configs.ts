/** What is read of a template about ConfigMaps and Secrets. */
export type PodSpec = {
  readonly volumes?: readonly Volume[]
  readonly containers?: readonly Container[]
  readonly initContainers?: readonly Container[]
}
type Ref = { readonly name?: string }
type Volume = {
  readonly configMap?: Ref
  readonly secret?: { readonly secretName?: string }
  readonly projected?: { readonly sources?: readonly { readonly configMap?: Ref; readonly secret?: Ref }[] }
}
type Container = {
  readonly env?: readonly { readonly valueFrom?: { readonly configMapKeyRef?: Ref; readonly secretKeyRef?: Ref } }[]
  readonly envFrom?: readonly { readonly configMapRef?: Ref; readonly secretRef?: Ref }[]
}

/** The ConfigMaps and Secrets that a template names, each once, as `configmap/NAME` and `secret/NAME`. */
export function configsOf({ volumes = [], containers = [], initContainers = [] }: PodSpec): string[] {
  const map = (name: string | undefined) => (name ? [`configmap/${name}`] : [])
  const secret = (name: string | undefined) => (name ? [`secret/${name}`] : [])
  const found = [
    ...volumes.flatMap(({ configMap, secret: mounted, projected }) => [
      ...map(configMap?.name),
      ...secret(mounted?.secretName),
      ...(projected?.sources ?? []).flatMap(source => [...map(source.configMap?.name), ...secret(source.secret?.name)]),
    ]),
    ...[...initContainers, ...containers].flatMap(({ env = [], envFrom = [] }) => [
      ...env.flatMap(({ valueFrom }) => [
        ...map(valueFrom?.configMapKeyRef?.name),
        ...secret(valueFrom?.secretKeyRef?.name),
      ]),
      ...envFrom.flatMap(({ configMapRef, secretRef }) => [...map(configMapRef?.name), ...secret(secretRef?.name)]),
    ]),
  ]
  return [...new Set(found)].sort()
}
