import type { Target } from "#api/v1alpha1/serviceimage/index.ts"
import { workloadKind } from "#core/workloads/kinds.ts"
import { type KubeObject, type Resource, resourceOf } from "#runtime/resource.ts"

export const customResourceDefinitions: Resource = {
  group: "apiextensions.k8s.io",
  version: "v1",
  plural: "customresourcedefinitions",
  kind: "CustomResourceDefinition",
  namespaced: false,
}

/** A CustomResourceDefinition, reduced to what resolves a target. */
export type ServedKind = ReturnType<typeof readKind>

type CustomResourceDefinition = KubeObject & {
  spec: {
    group: string
    scope: string
    names: { kind: string; plural: string }
    versions: { name: string; served: boolean }[]
  }
  status?: { conditions?: { type: string; status: string }[] }
}

export function readKind(object: KubeObject) {
  const { metadata, spec, status } = object as CustomResourceDefinition
  return {
    resourceVersion: metadata.resourceVersion ?? "",
    id: kindId(spec.group, spec.names.kind),
    plural: spec.names.plural,
    namespaced: spec.scope === "Namespaced",
    versions: spec.versions.filter(version => version.served).map(version => version.name),
    isEstablished:
      metadata.deletionTimestamp === undefined &&
      (status?.conditions?.some(each => each.type === "Established" && each.status === "True") ?? false),
  }
}

const kindId = (group: string, kind: string) => `${kind}.${group}`

export function partsOf({ apiVersion, kind }: Pick<Target, "apiVersion" | "kind">) {
  const [group = "", version = ""] = apiVersion.split("/")
  return { group, version, kind, id: kindId(group, kind) }
}

/** Deployment, StatefulSet and DaemonSet are served everywhere. */
export function builtIn(target: Pick<Target, "apiVersion" | "kind">): Resource | undefined {
  const { group, version, kind } = partsOf(target)
  const known = workloadKind(kind)
  return known?.isTarget && known.group === group ? { ...resourceOf(known), version } : undefined
}

/** The resource of a target, if this definition of its kind is established and serves its version. */
export function servedBy(
  { isEstablished, versions, plural, namespaced }: ServedKind,
  target: Pick<Target, "apiVersion" | "kind">,
): Resource | undefined {
  const { group, version, kind } = partsOf(target)
  return isEstablished && versions.includes(version) ? { group, version, kind, plural, namespaced } : undefined
}
