/** Where the kinds are that cases name: group and version, and whether they live in namespaces. */
const places: Record<string, { under: string; plurals: string[]; clusterWide?: boolean }> = {
  core: {
    under: "/api/v1",
    plurals: [
      "configmaps",
      "endpoints",
      "events",
      "limitranges",
      "persistentvolumeclaims",
      "pods",
      "podtemplates",
      "replicationcontrollers",
      "resourcequotas",
      "secrets",
      "serviceaccounts",
      "services",
    ],
  },
  cluster: { under: "/api/v1", plurals: ["namespaces", "nodes"], clusterWide: true },
  apps: {
    under: "/apis/apps/v1",
    plurals: ["controllerrevisions", "daemonsets", "deployments", "replicasets", "statefulsets"],
  },
  batch: { under: "/apis/batch/v1", plurals: ["cronjobs", "jobs"] },
  policy: { under: "/apis/policy/v1", plurals: ["poddisruptionbudgets"] },
  leases: { under: "/apis/coordination.k8s.io/v1", plurals: ["leases"] },
  rbac: { under: "/apis/rbac.authorization.k8s.io/v1", plurals: ["roles", "rolebindings"] },
  clusterRbac: {
    under: "/apis/rbac.authorization.k8s.io/v1",
    plurals: ["clusterroles", "clusterrolebindings"],
    clusterWide: true,
  },
  autoscaling: { under: "/apis/autoscaling/v2", plurals: ["horizontalpodautoscalers"] },
  slices: { under: "/apis/discovery.k8s.io/v1", plurals: ["endpointslices"] },
  networks: { under: "/apis/networking.k8s.io/v1", plurals: ["networkpolicies"] },
  newEvents: { under: "/apis/events.k8s.io/v1", plurals: ["newevents"] },
  priorities: { under: "/apis/scheduling.k8s.io/v1", plurals: ["priorityclasses"], clusterWide: true },
  admission: {
    under: "/apis/admissionregistration.k8s.io/v1",
    plurals: [
      "mutatingadmissionpolicies",
      "mutatingadmissionpolicybindings",
      "validatingadmissionpolicies",
      "validatingadmissionpolicybindings",
    ],
    clusterWide: true,
  },
  definitions: { under: "/apis/apiextensions.k8s.io/v1", plurals: ["customresourcedefinitions"], clusterWide: true },
  dicoms: { under: "/apis/services.example.com/v1alpha1", plurals: ["dicoms"] },
  aim: { under: "/apis/autoimagemanager.io/v1alpha1", plurals: ["serviceimages"], clusterWide: true },
}

const byPlural = new Map(
  Object.values(places).flatMap(({ under, plurals, clusterWide = false }) =>
    plurals.map(plural => [plural, { under, clusterWide }] as const),
  ),
)

/** The path of a collection, an object or a subresource. */
export function pathOf(resource: string, namespace: string, name?: string): string {
  const tail = name === undefined ? "" : `/${name}`
  if (resource.startsWith("/")) {
    const [, collection = "", subresource = ""] = /^(.*?)(\/(?:status|scale))?$/.exec(resource) ?? []
    return `${collection}${tail}${subresource}`
  }
  const [plural = "", ...subresource] = resource.split("/")
  const place = byPlural.get(plural)
  if (!place) throw new Error(`resources.ts does not know ${plural}`)
  const inside = place.clusterWide ? "" : `/namespaces/${namespace}`
  const served = plural === "newevents" ? "events" : plural
  return [`${place.under}${inside}/${served}${tail}`, ...subresource].join("/")
}
