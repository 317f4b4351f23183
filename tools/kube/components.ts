import { readFileSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import type { Binaries } from "./binaries.ts"
import type { Certificates } from "./certificates.ts"
import { network } from "./orders.ts"

/** One program of the cluster and how it is started. */
export type Component = { name: string; command: string[]; env?: Record<string, string> }

export const realNode = "real-0"

/** The users of the API server, by static token. */
const users = {
  admin: { user: "admin", groups: ["system:masters"] },
  "kube-controller-manager": { user: "system:kube-controller-manager", groups: [] },
  "kube-scheduler": { user: "system:kube-scheduler", groups: [] },
  kubelet: { user: `system:node:${realNode}`, groups: ["system:nodes"] },
  "kube-proxy": { user: "system:kube-proxy", groups: [] },
  kwok: { user: "kwok", groups: ["system:masters"] },
  contour: { user: "contour", groups: ["system:masters"] },
  traefik: { user: "traefik", groups: ["system:masters"] },
} as const
export type User = keyof typeof users
export type Tokens = Record<User, string>

export function makeTokens(secret: () => string): Tokens {
  return Object.fromEntries(Object.keys(users).map(name => [name, secret()])) as Tokens
}

export type Place = {
  folder: string
  binaries: Binaries
  certificates: Certificates
  tokens: Tokens
  /** The control plane behaves as this version: `1.34`. */
  emulatedVersion?: string | undefined
}

const emulating = ({ emulatedVersion }: Place) =>
  emulatedVersion ? [`--emulated-version=kube=${emulatedVersion}`] : []

const insideUrl = `https://${network.address}:${network.apiPort}`

/** A kubeconfig; JSON is YAML, so every reader of kubeconfigs takes it. */
export function kubeconfig(access: { server: string; certificateAuthority: string; token: string }): string {
  const certificateAuthorityData = Buffer.from(access.certificateAuthority).toString("base64")
  const content = {
    apiVersion: "v1",
    kind: "Config",
    "current-context": "aim",
    contexts: [{ name: "aim", context: { cluster: "aim", user: "aim" } }],
    clusters: [
      { name: "aim", cluster: { server: access.server, "certificate-authority-data": certificateAuthorityData } },
    ],
    users: [{ name: "aim", user: { token: access.token } }],
  }
  return `${JSON.stringify(content, undefined, 2)}\n`
}

export function etcd({ folder, binaries }: Place): Component {
  const clients = "http://127.0.0.1:2379"
  return {
    name: "etcd",
    command: [
      binaries.etcd,
      `--data-dir=${join(folder, "etcd")}`,
      `--listen-client-urls=${clients}`,
      `--advertise-client-urls=${clients}`,
      "--listen-peer-urls=http://127.0.0.1:0",
      // The data is worth nothing after the cluster: waiting for the disk would only make tests slow.
      "--unsafe-no-fsync",
      "--log-level=warn",
    ],
  }
}

export function apiServer(place: Place): Component {
  const { folder, binaries, certificates, tokens } = place
  const tokenFile = join(folder, "tokens.csv")
  const lines = Object.entries(users).map(
    ([name, { user, groups }]) => `${tokens[name as User]},${user},${name},"${groups.join(",")}"`,
  )
  writeFileSync(tokenFile, `${lines.join("\n")}\n`, { mode: 0o600 })
  return {
    name: "kube-apiserver",
    command: [
      binaries["kube-apiserver"],
      "--etcd-servers=http://127.0.0.1:2379",
      `--advertise-address=${network.address}`,
      `--secure-port=${network.apiPort}`,
      `--service-cluster-ip-range=${network.serviceRange}`,
      `--tls-cert-file=${certificates.server.certificate}`,
      `--tls-private-key-file=${certificates.server.key}`,
      `--client-ca-file=${certificates.authority}`,
      `--token-auth-file=${tokenFile}`,
      "--authorization-mode=Node,RBAC",
      "--enable-admission-plugins=NodeRestriction",
      "--allow-privileged=true",
      "--service-account-issuer=https://kubernetes.default.svc",
      `--service-account-key-file=${certificates.serviceAccount.publicKey}`,
      `--service-account-signing-key-file=${certificates.serviceAccount.key}`,
      `--kubelet-client-certificate=${certificates.kubeletClient.certificate}`,
      `--kubelet-client-key=${certificates.kubeletClient.key}`,
      "--kubelet-preferred-address-types=InternalIP",
      "--profiling=false",
      ...emulating(place),
    ],
  }
}

export function controllerManager(place: Place): Component {
  const { binaries, certificates } = place
  return {
    name: "kube-controller-manager",
    command: [
      binaries["kube-controller-manager"],
      `--kubeconfig=${insideKubeconfig(place, "kube-controller-manager")}`,
      "--use-service-account-credentials=true",
      `--service-account-private-key-file=${certificates.serviceAccount.key}`,
      `--root-ca-file=${certificates.authority}`,
      "--bind-address=127.0.0.1",
      // There is one of them, so an election would only cost its start fifteen seconds after a restart.
      "--leader-elect=false",
      // It makes an account and a token for each of its controllers first; the usual limit makes that four seconds.
      "--kube-api-qps=500",
      "--kube-api-burst=1000",
      // A node that became ready between two looks keeps its taint until the next, usually five seconds later.
      "--node-monitor-period=1s",
      "--profiling=false",
      ...emulating(place),
    ],
  }
}

export function scheduler(place: Place): Component {
  return {
    name: "kube-scheduler",
    command: [
      place.binaries["kube-scheduler"],
      `--kubeconfig=${insideKubeconfig(place, "kube-scheduler")}`,
      "--bind-address=127.0.0.1",
      "--leader-elect=false",
      "--kube-api-qps=500",
      "--kube-api-burst=1000",
      "--profiling=false",
      ...emulating(place),
    ],
  }
}

/** Simulates the kubelet of every node that is marked as fake, with its built-in behaviour or with given stages. */
export function kwok(place: Place, stages: readonly object[] = []): Component {
  const file = join(place.folder, "kwok-stages.yaml")
  if (stages.length > 0) writeFileSync(file, stages.map(stage => JSON.stringify(stage)).join("\n---\n"))
  return {
    name: "kwok",
    command: [
      place.binaries.kwok,
      `--kubeconfig=${insideKubeconfig(place, "kwok")}`,
      "--manage-nodes-with-annotation-selector=kwok.x-k8s.io/node=fake",
      "--node-lease-duration-seconds=40",
      "--cidr=10.89.0.0/16",
      `--node-ip=${network.address}`,
      ...(stages.length > 0 ? [`--config=${file}`] : []),
    ],
    // It keeps a folder in the home directory; the cluster's own is taken away with the cluster.
    env: { HOME: place.folder },
  }
}

/** Writes the kubeconfig that a program of the cluster uses itself, and gives its path. */
export function insideKubeconfig({ folder, certificates, tokens }: Place, user: User): string {
  const file = join(folder, `${user}.kubeconfig`)
  const certificateAuthority = readFileSync(certificates.authority, "utf8")
  writeFileSync(file, kubeconfig({ server: insideUrl, certificateAuthority, token: tokens[user] }), { mode: 0o600 })
  return file
}
