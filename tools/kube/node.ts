import { mkdirSync, rmSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { type Component, insideKubeconfig, type Place, realNode } from "./components.ts"
import { network } from "./orders.ts"

/** What a real node needs besides the control plane: a registry, containerd and kubelet. */
export type NodePlace = Place & {
  registryPort: number
  snapshotter: "overlayfs" | "native"
  /** Where containerd and its shim are; Debian's unless given. */
  containerdFolder?: string | undefined
}

export const pauseImage = "pause:1"
/** Pods whose manifests lie there are static. */
export const staticPods = (folder: string) => join(folder, "static-pods")
export const containerdSocket = (folder: string) => join(folder, "containerd.sock")

/** An image registry without TLS. Its port is the same inside and outside, so that one reference works in both. */
export function registry({ folder, registryPort }: NodePlace): Component {
  const config = {
    version: "0.1",
    log: { level: "warn" },
    storage: { filesystem: { rootdirectory: join(folder, "registry") }, delete: { enabled: true } },
    http: { addr: `0.0.0.0:${registryPort}` },
  }
  const file = writeJson(join(folder, "registry.yaml"), config)
  return { name: "registry", command: ["docker-registry", "serve", file] }
}

export function containerd({ folder, registryPort, snapshotter, containerdFolder }: NodePlace): Component {
  const file = join(folder, "containerd.toml")
  const cri = `plugins."io.containerd.grpc.v1.cri"`
  const networks = join(folder, "cni")
  const hosts = hostsFolder(folder)
  writeFileSync(
    file,
    `version = 2
root = "${join(folder, "containerd")}"
state = "/run/containerd"
disabled_plugins = ["io.containerd.snapshotter.v1.aufs", "io.containerd.snapshotter.v1.btrfs",
  "io.containerd.snapshotter.v1.devmapper", "io.containerd.snapshotter.v1.zfs", "io.containerd.internal.v1.opt"]
[grpc]
address = "${containerdSocket(folder)}"
[${cri}]
sandbox_image = "127.0.0.1:${registryPort}/${pauseImage}"
restrict_oom_score_adj = true
disable_apparmor = true
disable_hugetlb_controller = true
[${cri}.cni]
bin_dir = "/usr/lib/cni"
conf_dir = "${networks}"
[${cri}.registry]
config_path = "${hosts}"
[${cri}.containerd]
snapshotter = "${snapshotter}"
[${cri}.containerd.runtimes.runc]
runtime_type = "io.containerd.runc.v2"
[${cri}.containerd.runtimes.runc.options]
SystemdCgroup = false
`,
  )
  mkdirSync(networks, { recursive: true })
  writeJson(join(networks, "10-aim.conflist"), {
    cniVersion: "1.0.0",
    name: "aim",
    plugins: [
      {
        type: "bridge",
        bridge: network.bridge,
        isGateway: true,
        ipam: {
          type: "host-local",
          ranges: [[{ subnet: network.subnet, rangeStart: "10.88.0.10", gateway: network.address }]],
          routes: [{ dst: "0.0.0.0/0" }],
        },
      },
      { type: "portmap", capabilities: { portMappings: true } },
    ],
  })
  allowPlainHttp(folder, registryPort)
  return {
    name: "containerd",
    command: [containerdFolder ? join(containerdFolder, "containerd") : "containerd", "--config", file],
    // containerd finds its shim there.
    ...(containerdFolder && { env: { PATH: `${containerdFolder}:${process.env.PATH}:/usr/sbin:/sbin` } }),
  }
}

/** Lets containerd pull from a registry without TLS at this port. Read at every pull, so it may come at any time. */
export function allowPlainHttp(folder: string, port: number): void {
  for (const host of ["127.0.0.1", "localhost", network.address]) {
    const own = join(hostsFolder(folder), `${host}:${port}`)
    mkdirSync(own, { recursive: true })
    writeFileSync(join(own, "hosts.toml"), plainHttpAt(`http://${host}:${port}`))
  }
}

/**
 * Lets containerd pull what is said to be at `host` from a registry without TLS at this port instead, until the
 * function that is returned is called.
 */
export function standInFor(folder: string, host: string, port: number): () => void {
  const own = join(hostsFolder(folder), host)
  mkdirSync(own, { recursive: true })
  writeFileSync(join(own, "hosts.toml"), plainHttpAt(`http://127.0.0.1:${port}`))
  return () => rmSync(own, { recursive: true })
}

/** The server alone would say it, but containerd before 1.7 refuses a file that names no host. */
const plainHttpAt = (url: string) => `server = "${url}"\n[host."${url}"]\ncapabilities = ["pull", "resolve"]\n`

export function kubelet(place: NodePlace): Component {
  const { folder, binaries, certificates } = place
  const resolver = join(folder, "resolv.conf")
  writeFileSync(resolver, "")
  mkdirSync(staticPods(folder), { recursive: true })
  const config = writeJson(join(folder, "kubelet.yaml"), {
    apiVersion: "kubelet.config.k8s.io/v1beta1",
    kind: "KubeletConfiguration",
    containerRuntimeEndpoint: `unix://${containerdSocket(folder)}`,
    staticPodPath: staticPods(folder),
    authentication: {
      anonymous: { enabled: false },
      webhook: { enabled: true },
      x509: { clientCAFile: certificates.authority },
    },
    authorization: { mode: "Webhook" },
    // The machine's cgroups may be of version 1 and lack controllers, and limits are not what we test.
    failCgroupV1: false,
    featureGates: { KubeletInUserNamespace: true },
    cgroupDriver: "cgroupfs",
    cgroupsPerQOS: false,
    enforceNodeAllocatable: [],
    failSwapOn: false,
    localStorageCapacityIsolation: false,
    // A developer's full disk is no reason to evict pods or to remove images during a test.
    evictionHard: {
      "memory.available": "0%",
      "nodefs.available": "0%",
      "nodefs.inodesFree": "0%",
      "imagefs.available": "0%",
    },
    imageGCHighThresholdPercent: 100,
    serializeImagePulls: false,
    // Pods find no DNS, and say so quickly, instead of asking the machine's.
    resolvConf: resolver,
    clusterDNS: ["10.96.0.10"],
    clusterDomain: "cluster.local",
  })
  return {
    name: "kubelet",
    command: [
      binaries.kubelet,
      `--config=${config}`,
      `--kubeconfig=${insideKubeconfig(place, "kubelet")}`,
      `--root-dir=${join(folder, "kubelet")}`,
      `--node-ip=${network.address}`,
      `--hostname-override=${realNode}`,
      "--node-labels=type=real",
    ],
    env: { PATH: `${process.env.PATH}:/usr/sbin:/sbin` },
  }
}

const hostsFolder = (folder: string) => join(folder, "registries")

function writeJson(file: string, content: object): string {
  writeFileSync(file, JSON.stringify(content, undefined, 2))
  return file
}
