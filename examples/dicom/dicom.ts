import type { Condition } from "#runtime/conditions.ts"
import type { KubeObject, Resource } from "#runtime/resource.ts"

export const Dicoms: Resource = {
  group: "services.example.com",
  version: "v1alpha1",
  plural: "dicoms",
  kind: "Dicom",
  namespaced: true,
}

/** The three fields of the ImageSpec contract: embed them in the spec of your own kind. */
export type ImageSpec = {
  /** Absent or empty until the ServiceImage of the fleet has filled it in. */
  image?: string
  failureHaltsUpdate?: boolean
  manuallySpecifiedImage?: boolean
}

export type Toleration = { key?: string; operator?: string; value?: string; effect?: string }

export type DicomSpec = ImageSpec & {
  replicas: number
  aadPodIdentityResourceId?: string
  aadPodIdentityClientId?: string
  keyVaultUri?: string
  placement?: { nodeSelector?: Record<string, string>; tolerations?: Toleration[] }
}

export type DicomStatus = { observedGeneration?: number; conditions?: Condition[] }

/** What this controller uses of a Dicom, and all that its cache keeps. */
export type Dicom = {
  name: string
  namespace: string
  uid: string
  resourceVersion: string
  generation: number
  isBeingDeleted: boolean
  spec: DicomSpec
  status: DicomStatus
}

/** The one place where JSON becomes a Dicom. The server has checked it against crd.yaml and filled in the defaults. */
export function toDicom({ metadata, ...rest }: KubeObject): Dicom {
  const { spec, status } = rest as { spec?: Partial<DicomSpec>; status?: DicomStatus }
  return {
    name: metadata.name,
    namespace: metadata.namespace ?? "",
    uid: metadata.uid ?? "",
    resourceVersion: metadata.resourceVersion ?? "",
    generation: metadata.generation ?? 0,
    isBeingDeleted: metadata.deletionTimestamp !== undefined,
    spec: { replicas: 1, ...spec },
    status: status ?? {},
  }
}
