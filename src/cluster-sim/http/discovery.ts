import { apiVersionOf } from "#runtime/resource.ts"
import type { ServedKind } from "../apiserver/kind.ts"
import type { Json } from "../object.ts"

/** Discovery: the served groups, versions and kinds. */

export const serverVersion = {
  major: "1",
  minor: "36",
  emulationMajor: "1",
  emulationMinor: "36",
  minCompatibilityMajor: "1",
  minCompatibilityMinor: "35",
  gitVersion: "v1.36.3+cluster-sim",
  gitCommit: "",
  gitTreeState: "clean",
  buildDate: "1970-01-01T00:00:00Z",
  goVersion: "",
  compiler: "",
  platform: "node",
}

export type Served = Pick<
  ServedKind,
  | "group"
  | "version"
  | "kind"
  | "plural"
  | "singular"
  | "shortNames"
  | "categories"
  | "namespaced"
  | "verbs"
  | "subresources"
>

const isCustom = (kind: Served) => "isCustom" in kind && kind.isCustom === true

type Subresource = { group?: string; version?: string; kind: string; verbs: readonly string[] }

function subresource(kind: Served, name: string): Subresource {
  const known: Record<string, Subresource> = {
    scale: { group: "autoscaling", version: "v1", kind: "Scale", verbs: ["get", "patch", "update"] },
    eviction: { group: "policy", version: "v1", kind: "Eviction", verbs: ["create"] },
    binding: { kind: "Binding", verbs: ["create"] },
    log: { kind: kind.kind, verbs: ["get"] },
    exec: { kind: "PodExecOptions", verbs: ["create", "get"] },
    attach: { kind: "PodAttachOptions", verbs: ["create", "get"] },
    portforward: { kind: "PodPortForwardOptions", verbs: ["create", "get"] },
    token: { group: "authentication.k8s.io", version: "v1", kind: "TokenRequest", verbs: ["create"] },
    finalize: { kind: kind.kind, verbs: ["update"] },
    approval: { kind: kind.kind, verbs: ["get", "patch", "update"] },
  }
  return known[name] ?? { kind: kind.kind, verbs: ["get", "patch", "update"] }
}

const byName = (kinds: readonly Served[]) => kinds.toSorted((a, b) => (a.plural < b.plural ? -1 : 1))

export function resourceList(group: string, version: string, kinds: readonly Served[]): Json {
  const resources = byName(kinds).flatMap(kind => [
    {
      name: kind.plural,
      singularName: kind.singular,
      namespaced: kind.namespaced,
      kind: kind.kind,
      verbs: kind.verbs,
      ...(kind.shortNames.length > 0 && { shortNames: kind.shortNames }),
      ...(kind.categories.length > 0 && { categories: kind.categories }),
    },
    ...kind.subresources.toSorted().map(name => {
      const { kind: itsKind, verbs, ...where } = subresource(kind, name)
      return {
        name: `${kind.plural}/${name}`,
        singularName: "",
        namespaced: kind.namespaced,
        ...where,
        kind: itsKind,
        verbs,
      }
    }),
  ])
  const apiVersion = apiVersionOf({ group, version })
  return { kind: "APIResourceList", ...(group && { apiVersion: "v1" }), groupVersion: apiVersion, resources }
}

/** Groups in the order they were added, each with its versions, the preferred one first. */
export function groupsOf(kinds: readonly Served[]): Map<string, string[]> {
  const groups = new Map<string, Set<string>>()
  for (const { group, version } of kinds) {
    const versions = groups.get(group)
    if (versions) versions.add(version)
    else groups.set(group, new Set([version]))
  }
  return new Map([...groups].map(([group, versions]) => [group, [...versions].sort(byPriority)]))
}

/** Stable before beta before alpha, then the higher number; anything else last, by name. */
function byPriority(a: string, b: string): number {
  const rank = (version: string) => {
    const found = /^v(\d+)(?:(alpha|beta)(\d+))?$/.exec(version)
    if (!found) return undefined
    const stage = { alpha: 0, beta: 1 }[found[2] as "alpha" | "beta"] ?? 2
    return [stage, Number(found[1]), Number(found[3] ?? 0)] as const
  }
  const [left, right] = [rank(a), rank(b)]
  if (!left || !right) return left ? -1 : right ? 1 : a < b ? -1 : 1
  for (const index of [0, 1, 2] as const) if (left[index] !== right[index]) return right[index] - left[index]
  return 0
}

export function groupInfo(group: string, versions: readonly string[]): Json {
  const all = versions.map(version => ({ groupVersion: apiVersionOf({ group, version }), version }))
  return { name: group, versions: all, preferredVersion: all[0] }
}

/** Aggregated discovery, which kubectl asks for first. */
export function aggregated(kinds: readonly Served[], isCore: boolean): Json {
  const groups = [...groupsOf(kinds)].filter(([group]) => (group === "") === isCore)
  // For built-in kinds only the kind's name is given: group and version are those around it.
  const responseKind = (
    where: Served,
    kind: string,
    { group, version }: { group?: string; version?: string } = {},
  ) => ({
    group: group ?? (isCustom(where) ? where.group : ""),
    version: version ?? (isCustom(where) ? where.version : ""),
    kind,
  })
  const items = groups.map(([group, versions]) => ({
    metadata: group ? { name: group } : {},
    versions: versions.map(version => ({
      version,
      resources: byName(kinds.filter(kind => kind.group === group && kind.version === version)).map(kind => ({
        resource: kind.plural,
        responseKind: responseKind(kind, kind.kind),
        scope: kind.namespaced ? "Namespaced" : "Cluster",
        singularResource: kind.singular,
        verbs: kind.verbs,
        ...(kind.shortNames.length > 0 && { shortNames: kind.shortNames }),
        ...(kind.categories.length > 0 && { categories: kind.categories }),
        ...(kind.subresources.length > 0 && {
          subresources: kind.subresources.toSorted().map(name => {
            const { kind: itsKind, verbs, ...where } = subresource(kind, name)
            return { subresource: name, responseKind: responseKind(kind, itsKind, where), verbs }
          }),
        }),
      })),
      freshness: "Current",
    })),
  }))
  return { kind: "APIGroupDiscoveryList", apiVersion: "apidiscovery.k8s.io/v2", metadata: {}, items }
}
