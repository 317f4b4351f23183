import { spawn } from "node:child_process"
import { randomBytes } from "node:crypto"
import { once } from "node:events"
import { linkSync } from "node:fs"
import { join } from "node:path"
import { systemClock } from "#runtime/clock.ts"
import { connectRuntime } from "#runtime/cri/index.ts"
import { type Access, connectApi, type Json, until } from "#tools/kube/api.ts"
import { run } from "#tools/kube/command.ts"
import { type PushedImage, pushImage, pushIndex } from "#tools/kube/images.ts"
import { onRealNode } from "../../support/floor.ts"
import { startRegistry } from "../../support/registries.ts"
import type { ContainerWish, PodWish, RuntimeFloor } from "./floor.ts"

/** What a real cluster offers, shared or of the test's own. */
export type RealCluster = {
  folder: string
  /** A process inside. */
  pid: number
  access: Access
  registry: string
  containerdSocket: string
  expose(port: number): Promise<void>
  stopProgram(name: string, signal?: NodeJS.Signals): Promise<void>
  startProgram(name: string): Promise<void>
}

/** Layers are kept in $1. They are moved to a file system in memory, which is then made as small as it can be and 2 MB. */
const replaceBySmallDisk = `
  mkdir -p "$2"
  mount -t tmpfs tmpfs "$2"
  cp -a "$1/." "$2/"
  mount -o "remount,size=$(($(df --output=used "$2" | tail -1) + 2000))k" "$2"
  mount --bind "$2" "$1"`

/** What came meanwhile is kept: containerd knows of it. */
const takeSmallDiskAway = `
  umount --lazy "$1"
  cp -a "$2/." "$1/"
  umount --lazy "$2"`

/** The real node of a cluster, with a namespace and a private registry for the scripts. */
export async function realFloor(cluster: RealCluster): Promise<RuntimeFloor> {
  const { access, registry, containerdSocket, folder, pid } = cluster
  const api = connectApi(access)
  const credentials = { username: "puller", password: randomBytes(8).toString("hex") }
  const locked = await startRegistry({ credentials, expose: port => cluster.expose(port) })
  const namespace = `cri-${randomBytes(4).toString("hex")}`
  await api.create("/api/v1/namespaces", { metadata: { name: namespace } })
  const account = `/api/v1/namespaces/${namespace}/serviceaccounts/default`
  const [polite, stubborn] = await Promise.all([
    pushImage(registry, "polite:v1"),
    pushImage(registry, "stubborn:v1", { command: ["/bin/sh", "-c", "trap '' TERM; while :; do sleep 1; done"] }),
    until("the namespace's service account", () => api.find(account)),
  ])
  const images = { polite, stubborn }
  const connect = (socketPath = containerdSocket) => connectRuntime({ socketPath })
  const runtime = connect()
  let mounts = 0

  return {
    runtime,
    clock: systemClock,
    connect,
    connectMounted() {
      // A second name of the same socket, as the mount of a file is one.
      const name = `${containerdSocket}.${mounts++}`
      linkSync(containerdSocket, name)
      return connect(name)
    },
    async freezeDuringStop(id, { graceSeconds }) {
      const caller = [join(import.meta.dirname, "caller.ts"), containerdSocket, id, String(graceSeconds)]
      // It must not outlive the tests, however they end.
      const child = spawn("setpriv", ["--pdeathsig", "KILL", process.execPath, ...caller], {
        stdio: ["ignore", "inherit", "inherit", "ipc"],
      })
      await once(child, "message")
      child.kill("SIGSTOP")
      return () => child.kill("SIGKILL")
    },
    async startPod(wish) {
      const pods = `/api/v1/namespaces/${namespace}/pods`
      await api.create(pods, manifest(wish, images))
      const pod = await until(`pod ${wish.name}`, async () => {
        const seen = await api.get(`${pods}/${wish.name}`)
        const statuses: Json[] = seen.status.containerStatuses ?? []
        return statuses.length > 0 && statuses.every(({ state }) => state.running) && seen
      })
      // A container runs before its process has set its trap. This image greets after that.
      for (const { name } of wish.containers.filter(({ behaviour }) => behaviour === "polite"))
        await until(`container ${name} of ${wish.name} greets`, async () =>
          (await api.text(`${pods}/${wish.name}/log?container=${name}`)).includes("version"),
        )
      return pod.metadata.uid
    },
    async push(where, name, options) {
      const address = where === "public" ? registry : locked.backend
      const pushed = await pushImage(address, name, options)
      const digest = options?.onlyFor ? await pushIndex(address, name, options.onlyFor) : pushed.digest
      return { reference: `${where === "public" ? registry : locked.address}/${name}`, digest }
    },
    host: where => (where === "public" ? registry : locked.address),
    credentials,
    holdLayers: () => locked.holdLayers(),
    async fillDisk() {
      const inside = (script: string) => {
        const places = [join(folder, "containerd/io.containerd.content.v1.content"), join(folder, "small-disk")]
        return run("nsenter", ["--target", String(pid), "--all", "sh", "-ec", script, "sh", ...places])
      }
      await inside(replaceBySmallDisk)
      return async () => void (await inside(takeSmallDiskAway))
    },
    killRuntime: () => cluster.stopProgram("containerd", "SIGKILL"),
    async startRuntime() {
      await cluster.startProgram("containerd")
      await until("containerd answers", () => runtime.version())
    },
    words: [
      [join(folder, "containerd"), "/var/lib/containerd"],
      [registry, "REGISTRY"],
      [locked.address, "PRIVATE"],
      [namespace, "NAMESPACE"],
    ],
    async close() {
      runtime.close()
      await api.remove(`/api/v1/namespaces/${namespace}`)
      api.close()
      await locked.close()
    },
  }
}

function manifest(wish: PodWish, images: Record<ContainerWish["behaviour"], PushedImage>) {
  const { name, restartPolicy, graceSeconds: terminationGracePeriodSeconds } = wish
  const containers = wish.containers.map(({ name, behaviour, preStop, ports = [] }) => ({
    ...{ name, ports, image: images[behaviour].reference },
    ...(preStop && { lifecycle: { preStop } }),
  }))
  return { metadata: { name }, spec: { containers, restartPolicy, terminationGracePeriodSeconds, ...onRealNode } }
}
