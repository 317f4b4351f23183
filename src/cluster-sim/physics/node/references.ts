import type { KindStorage } from "../../apiserver/storage.ts"
import type { Json, Obj } from "../../object.ts"

/** A ConfigMap or Secret of the pod's namespace. */
export type FindReferred = (kind: "ConfigMap" | "Secret", name: string) => Obj | undefined

export const referredBy =
  (storage: KindStorage, { metadata: { namespace } }: Obj): FindReferred =>
  (kindName, name) => {
    const kind = storage.kind("v1", kindName)
    return kind && storage.find(kind, { namespace, name })
  }

const wordOf = { ConfigMap: "configmap", Secret: "secret" } as const

const hasKey = (object: Obj, key: string) =>
  [object.data, object.binaryData].some(data => data !== undefined && Object.hasOwn(data, key))

/** Why a container's environment cannot be built, in the kubelet's words; undefined if it can. */
export function environmentProblem(container: Json, namespace: string, find: FindReferred): string | undefined {
  for (const { configMapRef, secretRef } of container.envFrom ?? []) {
    const reference = configMapRef ?? secretRef
    const kind = configMapRef ? "ConfigMap" : "Secret"
    if (reference && !reference.optional && !find(kind, reference.name)) return missing(kind, reference.name)
  }
  for (const { valueFrom = {} } of container.env ?? []) {
    const reference = valueFrom.configMapKeyRef ?? valueFrom.secretKeyRef
    if (!reference || reference.optional) continue
    const kind = valueFrom.configMapKeyRef ? "ConfigMap" : "Secret"
    const found = find(kind, reference.name)
    if (!found) return missing(kind, reference.name)
    if (!hasKey(found, reference.key))
      return `couldn't find key ${reference.key} in ${kind} ${namespace}/${reference.name}`
  }
  return undefined
}

/** The kubelet's message for each volume that cannot be mounted. Volumes that no container mounts are ignored. */
export function mountProblems({ spec }: Obj, find: FindReferred): string[] {
  const isMounted = (volume: string) =>
    [...spec.containers, ...(spec.initContainers ?? [])].some(({ volumeMounts = [] }: Json) =>
      volumeMounts.some(({ name }: Json) => name === volume),
    )
  return (spec.volumes ?? []).flatMap(({ name, configMap, secret, projected }: Json) => {
    if (!(configMap || secret || projected) || !isMounted(name)) return []
    const sources = projected?.sources ?? []
    const why =
      sourceProblem("ConfigMap", configMap?.name, configMap, find) ??
      sourceProblem("Secret", secret?.secretName, secret, find) ??
      sources
        .map(
          (source: Json) =>
            sourceProblem("ConfigMap", source.configMap?.name, source.configMap, find) ??
            sourceProblem("Secret", source.secret?.name, source.secret, find),
        )
        .find((problem: string | undefined) => problem !== undefined)
    return why ? [`MountVolume.SetUp failed for volume "${name}" : ${why}`] : []
  })
}

function sourceProblem(
  kind: "ConfigMap" | "Secret",
  name: string | undefined,
  source: Json,
  find: FindReferred,
): string | undefined {
  if (!name || source.optional) return undefined
  const found = find(kind, name)
  if (!found) return missing(kind, name)
  const lacking = (source.items ?? []).find(({ key }: Json) => !hasKey(found, key))
  if (!lacking) return undefined
  return kind === "ConfigMap"
    ? `configmap references non-existent config key: ${lacking.key}`
    : `references non-existent secret key: ${lacking.key}`
}

const missing = (kind: "ConfigMap" | "Secret", name: string) => `${wordOf[kind]} "${name}" not found`
