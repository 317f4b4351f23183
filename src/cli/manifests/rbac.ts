import { group as ownGroup } from "#api/v1alpha1/group.ts"
import { builtInGroups } from "#api/v1alpha1/serviceimage/index.ts"
import { routeKinds } from "#core/canary/routers/index.ts"
import { workloadKinds } from "#core/workloads/kinds.ts"
import type { Permission } from "#runtime/controller.ts"
import {
  aggregateToController,
  aggregateToTarget,
  controllerName,
  controllerSubject,
  type Manifest,
  partOf,
  routesRole,
  targetRole,
} from "./names.ts"
import { rulesFor } from "./rules.ts"

/** Rights on these are split: a controller may read them everywhere, and change them where granted. */
const workloads = [
  ...workloadKinds,
  { group: "", plural: "pods" },
  { group: "", plural: "services" },
  { group: "autoscaling", plural: "horizontalpodautoscalers" },
]

/**
 * Read everywhere, and written where a namespace has granted it, by a role of their own: an account can grant only what it
 * holds, and Kubernetes gives administrators of namespaces no right on these.
 */
const routes = [...routeKinds, { group: "keda.sh", plural: "scaledobjects" }]

/** Read, and written, only where a namespace has granted it. */
const granted = [
  { group: "", plural: "serviceaccounts" },
  { group: "", plural: "configmaps" },
]

/** In no printed role: `aim grant --pull-secrets` and `--secrets` name the Secrets that may be read, in their namespace. */
const secrets = [{ group: "", plural: "secrets" }]

const stamping = (resource: ForeignKind): Permission => ({ resource, verbs: ["get", "list", "watch", "patch"] })

export type Declared = {
  /** What the controllers declare they need. */
  controllers: readonly Permission[]
  /** Rights for the leader election, only in the namespace of the Lease. */
  election: readonly Permission[]
}

export type ForeignKind = Permission["resource"]

const rbac = "rbac.authorization.k8s.io/v1"

/** All rights of the controllers, from what their code declares. */
export function roles(declared: Declared, namespace: string): Manifest[] {
  const { own, onTargets } = split(declared.controllers, [...workloads, ...routes])
  const isRoute = ({ resource }: Permission) => isOneOf(resource, routes)
  return [
    {
      apiVersion: "v1",
      kind: "ServiceAccount",
      metadata: { name: controllerName, namespace, labels: partOf },
      // The Deployment requests the token itself; other pods of this account get none automatically.
      automountServiceAccountToken: false,
    },
    aggregated(controllerName, aggregateToController),
    clusterRole(`${controllerName}-base`, aggregateToController, own),
    {
      apiVersion: rbac,
      kind: "ClusterRoleBinding",
      metadata: { name: controllerName, labels: partOf },
      roleRef: { apiGroup: "rbac.authorization.k8s.io", kind: "ClusterRole", name: controllerName },
      subjects: [controllerSubject(namespace)],
    },
    {
      apiVersion: rbac,
      kind: "Role",
      metadata: { name: `${controllerName}-election`, namespace, labels: partOf },
      rules: rulesFor(declared.election),
    },
    {
      apiVersion: rbac,
      kind: "RoleBinding",
      metadata: { name: `${controllerName}-election`, namespace, labels: partOf },
      roleRef: { apiGroup: "rbac.authorization.k8s.io", kind: "Role", name: `${controllerName}-election` },
      subjects: [controllerSubject(namespace)],
    },
    aggregated(targetRole, aggregateToTarget),
    ...(onTargets.length > 0
      ? [
          clusterRole(
            `${targetRole}-base`,
            aggregateToTarget,
            onTargets.filter(permission => !isRoute(permission)),
          ),
        ]
      : []),
    ...(onTargets.some(isRoute) ? [clusterRole(routesRole, {}, onTargets.filter(isRoute))] : []),
  ]
}

/** Lets the controllers read a custom kind everywhere and change it where `aim-target` is bound. */
export const rolesFor = (foreign: ForeignKind): Manifest[] => {
  const suffix = `${foreign.plural}.${foreign.group}`
  const { own, onTargets } = split([stamping(foreign)], [foreign])
  return [
    clusterRole(`${controllerName}-${suffix}`, aggregateToController, own),
    clusterRole(`${targetRole}-${suffix}`, aggregateToTarget, onTargets),
  ]
}

const isOneOf = (resource: ForeignKind, kinds: readonly ForeignKind[]) =>
  kinds.some(({ group, plural }) => group === resource.group && plural === resource.plural)

/**
 * Opt-in is a grant: of the rights that a controller declares on a target, only reading is cluster-wide. The writes
 * go to `aim-target`, which is bound namespace by namespace.
 */
function split(permissions: readonly Permission[], targets: readonly ForeignKind[]) {
  const isRead = (verb: string) => ["get", "list", "watch"].includes(verb)
  const verbsOf = (permission: Permission, isWanted: (verb: string) => boolean): Permission[] => {
    const verbs = permission.verbs.filter(isWanted)
    return verbs.length > 0 ? [{ ...permission, verbs }] : []
  }
  const open = permissions.filter(({ resource }) => !isOneOf(resource, secrets))
  const own = open
    .filter(({ resource }) => !isOneOf(resource, granted))
    .flatMap(permission => (isOneOf(permission.resource, targets) ? verbsOf(permission, isRead) : [permission]))
  const onTargets = open.flatMap(permission => {
    if (isOneOf(permission.resource, granted)) return [permission]
    return isOneOf(permission.resource, targets) ? verbsOf(permission, verb => !isRead(verb)) : []
  })
  return { own, onTargets }
}

const clusterRole = (name: string, labels: Record<string, string>, permissions: readonly Permission[]): Manifest => ({
  apiVersion: rbac,
  kind: "ClusterRole",
  metadata: { name, labels: { ...partOf, ...labels } },
  rules: rulesFor(permissions),
})

/** A role that is the sum of all roles with these labels. The server fills in its rules, so none are written here. */
const aggregated = (name: string, matchLabels: Record<string, string>): Manifest => ({
  apiVersion: rbac,
  kind: "ClusterRole",
  metadata: { name, labels: partOf },
  aggregationRule: { clusterRoleSelectors: [{ matchLabels }] },
})

/** What a kind of your own may be called; the schema of the chart's values has the same. */
export const foreignNames = {
  plural: /^[a-z]([-a-z0-9]*[a-z0-9])?$/,
  group: /^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$/,
  version: /^v[0-9]+((alpha|beta)[0-9]+)?\./,
  groupsOfOthers: [...builtInGroups, ownGroup],
}

/** Reads `dicoms.services.example.com`; the answer is the kind, or what to write instead. */
export function parseForeignKind(text: string): ForeignKind | { wrong: string } {
  const example = "write its plural and its group in lower case, such as dicoms.services.example.com"
  const where = "to find them: kubectl api-resources"
  const dot = text.indexOf(".")
  if (dot <= 0 || dot === text.length - 1)
    return { wrong: `${text} has no ${dot === 0 ? "resource" : "group"}: ${example}\n${where}` }
  const plural = text.slice(0, dot)
  const group = text.slice(dot + 1)
  if (plural.length > 63 || !foreignNames.plural.test(plural))
    return { wrong: `${plural} is not the plural name of a resource: ${example}\n${where}` }
  if (group.length > 253 || !foreignNames.group.test(group))
    return { wrong: `${group} is not an API group: ${example}\n${where}` }
  if (foreignNames.version.test(group))
    return { wrong: `${text} names a version: leave ${group.split(".")[0]} out, roles are for all versions of a kind` }
  if (isOneOf({ plural, group }, [...workloads, ...routes]))
    return { wrong: `${text} is part of every installation: --for is for other kinds` }
  if (foreignNames.groupsOfOthers.includes(group))
    return { wrong: `${text} cannot be a target: only custom kinds and Deployment, StatefulSet and DaemonSet can` }
  return { plural, group }
}
