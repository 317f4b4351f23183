import { ServiceImage } from "#api/v1alpha1/serviceimage/index.ts"
import type { Permission } from "#runtime/controller.ts"
import { core, type Resource } from "#runtime/resource.ts"
import { grantPermissions } from "../grants.ts"
import { podPermissions } from "./pods.ts"

export const serviceImages: Resource = {
  group: ServiceImage.group,
  version: ServiceImage.version,
  plural: ServiceImage.plural,
  kind: ServiceImage.kind,
  namespaced: false,
}

export const customResourceDefinitions: Resource = {
  group: "apiextensions.k8s.io",
  version: "v1",
  plural: "customresourcedefinitions",
  kind: "CustomResourceDefinition",
  namespaced: false,
}

export const namespaces = core("namespaces", "Namespace", false)

/** The target's objects are not among these: `aim manifests rbac --for` prints what reading and stamping them needs. */
export const permissions: readonly Permission[] = [
  { resource: serviceImages, verbs: ["list", "watch"] },
  { resource: serviceImages, subresource: "status", verbs: ["update"] },
  { resource: customResourceDefinitions, verbs: ["list", "watch"] },
  { resource: namespaces, verbs: ["list", "watch"] },
  ...grantPermissions,
  ...podPermissions,
  { resource: { group: ServiceImage.group, plural: "alternateimagesources" }, verbs: ["list", "watch"] },
  // Which of these may be changed is up to each namespace: the roles give the patch only where it was granted.
  ...["deployments", "statefulsets", "daemonsets"].map(
    (plural): Permission => ({ resource: { group: "apps", plural }, verbs: ["list", "watch", "patch"] }),
  ),
]
