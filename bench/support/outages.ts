import { once } from "node:events"
import { createServer } from "node:http"
import type { AddressInfo } from "node:net"
import { setTimeout as sleep } from "node:timers/promises"
import { crdOf } from "#api/crd.ts"
import { AlternateImageSource } from "#api/v1alpha1/alternateimagesource/index.ts"
import { customResourceDefinitions as definitions } from "#controllers/served-kind.ts"
import type { Client } from "#runtime/client/client.ts"
import { type Json, until } from "#tools/kube/api.ts"

/** The repository that every workload names, and that fails. */
export const failing = "registry.example.com/team/app"

/** A registry on this machine that has every image. */
export type Mirror = {
  repository: string
  /** For `--allow-registry`. */
  allowed: string
  /** The most questions that were open at once. */
  atOnceMost(): number
  questions(): number
  close(): Promise<void>
}

export async function openMirror({ answerMs }: { answerMs: number }): Promise<Mirror> {
  let [open, most, questions] = [0, 0, 0]
  const server = createServer(async (_, response) => {
    questions++
    most = Math.max(most, ++open)
    if (answerMs > 0) await sleep(answerMs)
    open--
    response
      .writeHead(200, {
        "content-type": "application/vnd.oci.image.manifest.v1+json",
        "docker-content-digest": `sha256:${"1".repeat(64)}`,
        "content-length": 2,
      })
      .end()
  })
  await once(server.listen(0, "127.0.0.1"), "listening")
  const host = `127.0.0.1:${(server.address() as AddressInfo).port}`
  return {
    repository: `${host}/team/app`,
    allowed: `http://${host}`,
    atOnceMost: () => most,
    questions: () => questions,
    async close() {
      server.closeAllConnections()
      server.close()
      await once(server, "close")
    },
  }
}

export async function serveSources(client: Client): Promise<void> {
  const created = await client.create(definitions, crdOf(AlternateImageSource) as Json)
  await until("AlternateImageSources to be served", async () => {
    const { status }: Json = await client.get(definitions, created.metadata)
    return status?.conditions?.some((each: Json) => each.type === "Established" && each.status === "True") ?? false
  })
}

export const source = (namespace: string, mirror: Mirror): Json => ({
  apiVersion: AlternateImageSource.apiVersion,
  kind: AlternateImageSource.kind,
  metadata: { name: "bench", namespace },
  spec: {
    imageSourceReplacements: [{ equivalentRepositories: [failing, mirror.repository] }],
    // Every outage is a new one, and no second is spent on waiting.
    policy: { confirmSeconds: 0, cooldownSeconds: 0 },
  },
})

export const deployment = (name: string, namespace: string, image: string): Json => ({
  apiVersion: "apps/v1",
  kind: "Deployment",
  metadata: { name, namespace, labels: { app: name } },
  spec: {
    replicas: 1,
    selector: { matchLabels: { app: name } },
    // No scheduler handles them: only the reported status of the pods counts.
    template: { metadata: { labels: { app: name } }, spec: { schedulerName: "nobody", containers: containers(image) } },
  },
})

export const replicaSet = ({ metadata, spec: { selector, template } }: Json): Json => ({
  apiVersion: "apps/v1",
  kind: "ReplicaSet",
  metadata: {
    name: `${metadata.name}-7c9d8f6b5`,
    namespace: metadata.namespace,
    labels: metadata.labels,
    ownerReferences: [ownedBy("Deployment", metadata)],
  },
  spec: { replicas: 1, selector, template },
})

/** A pod as a server sends it. */
export const podOf = ({ metadata }: Json, name: string, image: string): Json => ({
  apiVersion: "v1",
  kind: "Pod",
  metadata: {
    name: `${metadata.name}-${name}`,
    namespace: metadata.namespace,
    labels: { ...metadata.labels, "pod-template-hash": "7c9d8f6b5" },
    ownerReferences: [ownedBy("ReplicaSet", metadata)],
  },
  spec: { schedulerName: "nobody", containers: containers(image) },
})

const containers = (image: string): Json[] => [
  {
    name: "app",
    image,
    env: Array.from({ length: 8 }, (_, at) => ({ name: `SETTING_${at}`, value: `value ${at}` })),
    resources: { requests: { cpu: "100m", memory: "128Mi" }, limits: { memory: "256Mi" } },
  },
]

const ownedBy = (kind: string, { name, uid }: Json) => ({
  apiVersion: "apps/v1",
  kind,
  name,
  uid,
  controller: true,
  blockOwnerDeletion: true,
})

/** The message of a kubelet whose registry does not answer. */
export const cannotPull = (image: string): Json => ({
  phase: "Pending",
  containerStatuses: [
    containerStatus(image, {
      state: {
        waiting: {
          reason: "ErrImagePull",
          message: `failed to pull and unpack image "${image}": failed to resolve reference "${image}": failed to do request: Head "https://registry.example.com/v2/team/app/manifests/v1": dial tcp 192.0.2.1:443: connect: connection refused`,
        },
      },
    }),
  ],
})

export const running = (image: string): Json => ({
  phase: "Running",
  containerStatuses: [
    containerStatus(image, {
      ready: true,
      started: true,
      state: { running: { startedAt: "2026-01-01T00:00:00Z" } },
      imageID: `${image.slice(0, image.lastIndexOf(":"))}@sha256:${"1".repeat(64)}`,
      containerID: `containerd://${"2".repeat(64)}`,
    }),
  ],
})

const containerStatus = (image: string, more: Json): Json => ({
  name: "app",
  image,
  imageID: "",
  ready: false,
  restartCount: 0,
  started: false,
  ...more,
})
