/** What an API path needs of a kind. */
export type Resource = {
  readonly group: string // "" for the core group
  readonly version: string
  readonly plural: string
  readonly kind: string
  readonly namespaced: boolean
}

export type ObjectMeta = {
  name: string
  namespace?: string
  uid?: string
  resourceVersion?: string
  generation?: number
  creationTimestamp?: string
  deletionTimestamp?: string
  labels?: Record<string, string>
  annotations?: Record<string, string>
  ownerReferences?: OwnerReference[]
  finalizers?: string[]
}

export type OwnerReference = {
  apiVersion: string
  kind: string
  name: string
  uid: string
  controller?: boolean
  blockOwnerDeletion?: boolean
}

/** Any object as the API sends it: raw JSON, times as strings. */
export type KubeObject = { apiVersion?: string; kind?: string; metadata: ObjectMeta }

export type ObjectName = { name: string; namespace?: string | undefined }

/** `namespace/name`, or `name` for a cluster-scoped object: the key of queues and caches. */
export const keyOf = ({ namespace, name }: ObjectName) => (namespace ? `${namespace}/${name}` : name)

export function nameOf(key: string): ObjectName {
  const slash = key.indexOf("/")
  return slash < 0 ? { name: key } : { namespace: key.slice(0, slash), name: key.slice(slash + 1) }
}

export const apiVersionOf = ({ group, version }: Pick<Resource, "group" | "version">) =>
  group ? `${group}/${version}` : version

/** The owner reference of what an object makes, and what goes with it. */
export const controlledBy = (
  resource: Pick<Resource, "group" | "version" | "kind">,
  { name, uid = "" }: { name: string; uid?: string | undefined },
) => ({
  apiVersion: apiVersionOf(resource),
  kind: resource.kind,
  name,
  uid,
  controller: true,
  blockOwnerDeletion: true,
})

/** `dicoms.services.example.com`, as kubectl and RBAC name a resource. */
export const resourceName = ({ plural, group }: Pick<Resource, "plural" | "group">) =>
  group ? `${plural}.${group}` : plural

/** The resource of a kind that is declared by its names. */
export const resourceOf = ({
  group,
  version,
  plural,
  kind,
  scope,
}: Omit<Resource, "namespaced"> & { readonly scope: "Cluster" | "Namespaced" }): Resource => ({
  group,
  version,
  plural,
  kind,
  namespaced: scope === "Namespaced",
})

export const core = (plural: string, kind: string, namespaced = true): Resource => ({
  group: "",
  version: "v1",
  plural,
  kind,
  namespaced,
})

export const controllerRevisions: Resource = {
  group: "apps",
  version: "v1",
  plural: "controllerrevisions",
  kind: "ControllerRevision",
  namespaced: true,
}

export const endpointSlices: Resource = {
  group: "discovery.k8s.io",
  version: "v1",
  plural: "endpointslices",
  kind: "EndpointSlice",
  namespaced: true,
}

export const podDisruptionBudgets: Resource = {
  group: "policy",
  version: "v1",
  plural: "poddisruptionbudgets",
  kind: "PodDisruptionBudget",
  namespaced: true,
}

export const mutatingPolicies: Resource = {
  group: "admissionregistration.k8s.io",
  version: "v1",
  plural: "mutatingadmissionpolicies",
  kind: "MutatingAdmissionPolicy",
  namespaced: false,
}
