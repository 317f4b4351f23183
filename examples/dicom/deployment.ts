import { isDeepStrictEqual } from "node:util"
import type { Condition } from "#runtime/conditions.ts"
import { apiVersionOf, type KubeObject, type Resource } from "#runtime/resource.ts"
import { type Dicom, Dicoms } from "./dicom.ts"

export const Deployments: Resource = {
  group: "apps",
  version: "v1",
  plural: "deployments",
  kind: "Deployment",
  namespaced: true,
}

/** What this controller uses of a Deployment, and all that its cache keeps. */
export type Deployment = {
  name: string
  namespace: string
  uid: string
  resourceVersion: string
  /** The Dicom this Deployment belongs to. Of a Deployment that belongs to none, only the name is of interest. */
  owner?: { name: string; uid: string }
  generation: number
  spec: DeploymentSpec
  status: DeploymentStatus
}

export type DeploymentSpec = { replicas?: number; template?: object }

export type DeploymentStatus = {
  observedGeneration?: number
  replicas?: number
  updatedReplicas?: number
  availableReplicas?: number
  conditions?: Pick<Condition, "type" | "status" | "reason">[]
}

/** The one place where JSON becomes a Deployment. */
export function toDeployment({ metadata, ...rest }: KubeObject): Deployment {
  const { spec, status } = rest as { spec?: DeploymentSpec; status?: DeploymentStatus }
  const owner = metadata.ownerReferences?.find(
    ({ controller, apiVersion, kind }) => controller && apiVersion === apiVersionOf(Dicoms) && kind === Dicoms.kind,
  )
  const seen = {
    name: metadata.name,
    namespace: metadata.namespace ?? "",
    uid: metadata.uid ?? "",
    resourceVersion: metadata.resourceVersion ?? "",
    generation: metadata.generation ?? 0,
  }
  if (!owner) return { ...seen, spec: {}, status: {} }
  return { ...seen, owner: { name: owner.name, uid: owner.uid }, spec: spec ?? {}, status: status ?? {} }
}

export type DeploymentManifest = ReturnType<typeof manifestFor>

/**
 * The Deployment that a Dicom asks for: the fields this controller owns and no others, since it is sent by server-side
 * apply. Everything your service needs in its pods goes here.
 */
export function manifestFor({ name, namespace, uid, spec }: Dicom) {
  const selected = { "app.kubernetes.io/name": "dicom", "app.kubernetes.io/instance": name }
  const labels = { ...selected, "app.kubernetes.io/managed-by": "dicom-controller" }
  const variables = {
    AAD_POD_IDENTITY_RESOURCE_ID: spec.aadPodIdentityResourceId,
    AAD_POD_IDENTITY_CLIENT_ID: spec.aadPodIdentityClientId,
    KEY_VAULT_URI: spec.keyVaultUri,
  }
  return {
    apiVersion: apiVersionOf(Deployments),
    kind: Deployments.kind,
    metadata: {
      name,
      namespace,
      labels,
      // Deleting the Dicom deletes the Deployment, and with `kubectl delete --cascade=foreground` before it.
      ownerReferences: [
        { apiVersion: apiVersionOf(Dicoms), kind: Dicoms.kind, name, uid, controller: true, blockOwnerDeletion: true },
      ],
    },
    spec: {
      replicas: spec.replicas,
      selector: { matchLabels: selected },
      progressDeadlineSeconds: 120,
      // Without a readiness probe a container is ready as soon as it runs. Three seconds of running separate a service from
      // a crash at start; give your own service a readinessProbe, which is more reliable.
      minReadySeconds: 3,
      template: {
        metadata: { labels },
        spec: {
          containers: [
            {
              name: "dicom",
              image: spec.image ?? "",
              env: Object.entries(variables).flatMap(([name, value]) => (value ? [{ name, value }] : [])),
              securityContext: { allowPrivilegeEscalation: false, capabilities: { drop: ["ALL"] } },
            },
          ],
          // The service needs nothing of the node or the API server, so it runs in a namespace that allows nothing
          // (Pod Security "restricted").
          securityContext: { runAsNonRoot: true, runAsUser: 65532, seccompProfile: { type: "RuntimeDefault" } },
          automountServiceAccountToken: false,
          terminationGracePeriodSeconds: 5,
          nodeSelector: spec.placement?.nodeSelector ?? {},
          tolerations: spec.placement?.tolerations ?? [],
        },
      },
    },
  }
}

/**
 * Whether the Deployment already says everything the manifest says. The server adds defaults and other people their
 * annotations, so this asks for every field of the manifest and for no other.
 */
export function carries({ spec }: Deployment, manifest: DeploymentManifest): boolean {
  const { nodeSelector } = manifest.spec.template.spec
  const seen = spec.template as { spec?: { nodeSelector?: object } } | undefined
  // Labels that a tenant took out of its nodeSelector must go as well: the one map that has to be equal.
  return includes(spec, manifest.spec) && isDeepStrictEqual(seen?.spec?.nodeSelector ?? {}, nodeSelector)
}

function includes(seen: unknown, wanted: unknown): boolean {
  if (Array.isArray(wanted)) {
    // An empty list or map does not survive the way through the server.
    const list = Array.isArray(seen) ? seen : []
    return list.length === wanted.length && wanted.every((item, index) => includes(list[index], item))
  }
  if (typeof wanted === "object" && wanted !== null) {
    const map = (seen ?? {}) as Record<string, unknown>
    return Object.entries(wanted).every(([field, value]) => includes(map[field], value))
  }
  return seen === wanted
}
