// Written by tools/generate/cri-messages.ts; only names, numbers and types of fields, from
// pkg/apis/runtime/v1/api.proto of the Go module k8s.io/cri-api v0.36.3
// services/content/v1/content.proto of the Go module github.com/containerd/containerd/api v1.11.1
import type { MessageTable } from "#lib/protobuf.ts"
export type Messages = {
  VersionRequest: object
  VersionResponse: { runtimeName: string; runtimeVersion: string }
  ListContainersRequest: { filter?: Messages["ContainerFilter"] | undefined }
  ContainerFilter: { id: string; podSandboxId: string; labelSelector: Record<string, string> }
  ListContainersResponse: { containers: Messages["Container"][] }
  Container: {
    id: string
    podSandboxId: string
    metadata?: Messages["ContainerMetadata"] | undefined
    imageRef: string
    state: number
    createdAt: bigint
    labels: Record<string, string>
    annotations: Record<string, string>
    imageId: string
  }
  ContainerMetadata: { name: string; attempt: number }
  ContainerStatusRequest: { containerId: string }
  ContainerStatusResponse: { status?: Messages["ContainerStatus"] | undefined }
  ContainerStatus: {
    id: string
    metadata?: Messages["ContainerMetadata"] | undefined
    state: number
    createdAt: bigint
    startedAt: bigint
    finishedAt: bigint
    exitCode: number
    image?: Messages["ImageSpec"] | undefined
    imageRef: string
    reason: string
    message: string
    labels: Record<string, string>
    annotations: Record<string, string>
  }
  ImageSpec: { image: string }
  StopContainerRequest: { containerId: string; timeout: bigint }
  StopContainerResponse: object
  ExecSyncRequest: { containerId: string; cmd: string[]; timeout: bigint }
  ExecSyncResponse: { stdout: Buffer; stderr: Buffer; exitCode: number }
  PodSandboxStatusRequest: { podSandboxId: string }
  PodSandboxStatusResponse: { status?: Messages["PodSandboxStatus"] | undefined }
  PodSandboxStatus: {
    id: string
    metadata?: Messages["PodSandboxMetadata"] | undefined
    state: number
    network?: Messages["PodSandboxNetworkStatus"] | undefined
  }
  PodSandboxMetadata: { name: string; uid: string; namespace: string }
  PodSandboxNetworkStatus: { ip: string; additionalIps: Messages["PodIP"][] }
  PodIP: { ip: string }
  ListImagesRequest: object
  ListImagesResponse: { images: Messages["Image"][] }
  Image: { id: string; repoTags: string[]; repoDigests: string[]; size: bigint; pinned: boolean }
  ImageStatusRequest: { image?: Messages["ImageSpec"] | undefined }
  ImageStatusResponse: { image?: Messages["Image"] | undefined }
  PullImageRequest: {
    image?: Messages["ImageSpec"] | undefined
    auth?: Messages["AuthConfig"] | undefined
    sandboxConfig?: Messages["PodSandboxConfig"] | undefined
  }
  AuthConfig: { username: string; password: string; serverAddress: string; identityToken: string }
  PodSandboxConfig: { labels: Record<string, string>; annotations: Record<string, string> }
  PullImageResponse: { imageRef: string }
  ImageFsInfoRequest: object
  ImageFsInfoResponse: { imageFilesystems: Messages["FilesystemUsage"][] }
  FilesystemUsage: {
    fsId?: Messages["FilesystemIdentifier"] | undefined
    usedBytes?: Messages["UInt64Value"] | undefined
  }
  FilesystemIdentifier: { mountpoint: string }
  UInt64Value: { value: bigint }
  ListStatusesRequest: object
  ListStatusesResponse: { statuses: Messages["Status"][] }
  Status: { ref: string; offset: bigint; total: bigint }
}
export const table = {
  VersionRequest: {},
  VersionResponse: { 2: ["runtimeName", "string"], 3: ["runtimeVersion", "string"] },
  ListContainersRequest: { 1: ["filter", "ContainerFilter"] },
  ContainerFilter: { 1: ["id", "string"], 3: ["podSandboxId", "string"], 4: ["labelSelector", "string", "map"] },
  ListContainersResponse: { 1: ["containers", "Container", "list"] },
  Container: {
    1: ["id", "string"],
    2: ["podSandboxId", "string"],
    3: ["metadata", "ContainerMetadata"],
    5: ["imageRef", "string"],
    6: ["state", "int32"],
    7: ["createdAt", "int64"],
    8: ["labels", "string", "map"],
    9: ["annotations", "string", "map"],
    10: ["imageId", "string"],
  },
  ContainerMetadata: { 1: ["name", "string"], 2: ["attempt", "uint32"] },
  ContainerStatusRequest: { 1: ["containerId", "string"] },
  ContainerStatusResponse: { 1: ["status", "ContainerStatus"] },
  ContainerStatus: {
    1: ["id", "string"],
    2: ["metadata", "ContainerMetadata"],
    3: ["state", "int32"],
    4: ["createdAt", "int64"],
    5: ["startedAt", "int64"],
    6: ["finishedAt", "int64"],
    7: ["exitCode", "int32"],
    8: ["image", "ImageSpec"],
    9: ["imageRef", "string"],
    10: ["reason", "string"],
    11: ["message", "string"],
    12: ["labels", "string", "map"],
    13: ["annotations", "string", "map"],
  },
  ImageSpec: { 1: ["image", "string"] },
  StopContainerRequest: { 1: ["containerId", "string"], 2: ["timeout", "int64"] },
  StopContainerResponse: {},
  ExecSyncRequest: { 1: ["containerId", "string"], 2: ["cmd", "string", "list"], 3: ["timeout", "int64"] },
  ExecSyncResponse: { 1: ["stdout", "bytes"], 2: ["stderr", "bytes"], 3: ["exitCode", "int32"] },
  PodSandboxStatusRequest: { 1: ["podSandboxId", "string"] },
  PodSandboxStatusResponse: { 1: ["status", "PodSandboxStatus"] },
  PodSandboxStatus: {
    1: ["id", "string"],
    2: ["metadata", "PodSandboxMetadata"],
    3: ["state", "int32"],
    5: ["network", "PodSandboxNetworkStatus"],
  },
  PodSandboxMetadata: { 1: ["name", "string"], 2: ["uid", "string"], 3: ["namespace", "string"] },
  PodSandboxNetworkStatus: { 1: ["ip", "string"], 2: ["additionalIps", "PodIP", "list"] },
  PodIP: { 1: ["ip", "string"] },
  ListImagesRequest: {},
  ListImagesResponse: { 1: ["images", "Image", "list"] },
  Image: {
    1: ["id", "string"],
    2: ["repoTags", "string", "list"],
    3: ["repoDigests", "string", "list"],
    4: ["size", "uint64"],
    8: ["pinned", "bool"],
  },
  ImageStatusRequest: { 1: ["image", "ImageSpec"] },
  ImageStatusResponse: { 1: ["image", "Image"] },
  PullImageRequest: { 1: ["image", "ImageSpec"], 2: ["auth", "AuthConfig"], 3: ["sandboxConfig", "PodSandboxConfig"] },
  AuthConfig: {
    1: ["username", "string"],
    2: ["password", "string"],
    4: ["serverAddress", "string"],
    5: ["identityToken", "string"],
  },
  PodSandboxConfig: { 6: ["labels", "string", "map"], 7: ["annotations", "string", "map"] },
  PullImageResponse: { 1: ["imageRef", "string"] },
  ImageFsInfoRequest: {},
  ImageFsInfoResponse: { 1: ["imageFilesystems", "FilesystemUsage", "list"] },
  FilesystemUsage: { 2: ["fsId", "FilesystemIdentifier"], 3: ["usedBytes", "UInt64Value"] },
  FilesystemIdentifier: { 1: ["mountpoint", "string"] },
  UInt64Value: { 1: ["value", "uint64"] },
  ListStatusesRequest: {},
  ListStatusesResponse: { 1: ["statuses", "Status", "list"] },
  Status: { 3: ["ref", "string"], 4: ["offset", "int64"], 5: ["total", "int64"] },
} as const satisfies MessageTable
export const methods = {
  Version: { path: "/runtime.v1.RuntimeService/Version", request: "VersionRequest", response: "VersionResponse" },
  ListContainers: {
    path: "/runtime.v1.RuntimeService/ListContainers",
    request: "ListContainersRequest",
    response: "ListContainersResponse",
  },
  ContainerStatus: {
    path: "/runtime.v1.RuntimeService/ContainerStatus",
    request: "ContainerStatusRequest",
    response: "ContainerStatusResponse",
  },
  StopContainer: {
    path: "/runtime.v1.RuntimeService/StopContainer",
    request: "StopContainerRequest",
    response: "StopContainerResponse",
  },
  ExecSync: { path: "/runtime.v1.RuntimeService/ExecSync", request: "ExecSyncRequest", response: "ExecSyncResponse" },
  PodSandboxStatus: {
    path: "/runtime.v1.RuntimeService/PodSandboxStatus",
    request: "PodSandboxStatusRequest",
    response: "PodSandboxStatusResponse",
  },
  ListImages: {
    path: "/runtime.v1.ImageService/ListImages",
    request: "ListImagesRequest",
    response: "ListImagesResponse",
  },
  ImageStatus: {
    path: "/runtime.v1.ImageService/ImageStatus",
    request: "ImageStatusRequest",
    response: "ImageStatusResponse",
  },
  PullImage: { path: "/runtime.v1.ImageService/PullImage", request: "PullImageRequest", response: "PullImageResponse" },
  ImageFsInfo: {
    path: "/runtime.v1.ImageService/ImageFsInfo",
    request: "ImageFsInfoRequest",
    response: "ImageFsInfoResponse",
  },
  ListStatuses: {
    path: "/containerd.services.content.v1.Content/ListStatuses",
    request: "ListStatusesRequest",
    response: "ListStatusesResponse",
  },
} as const
export const containerStates = [
  "CONTAINER_CREATED",
  "CONTAINER_RUNNING",
  "CONTAINER_EXITED",
  "CONTAINER_UNKNOWN",
] as const
export const podSandboxStates = ["SANDBOX_READY", "SANDBOX_NOTREADY"] as const
