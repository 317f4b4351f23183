import { readFile, rm, writeFile } from "node:fs/promises"
import { tmpdir } from "node:os"
import { join, resolve } from "node:path"
import { parseManifests } from "#api/manifest.ts"
import { type Cluster, parseRegistries, serveHttp } from "#cluster-sim/index.ts"
import { scaledClock } from "#runtime/clock.ts"
import { createLogger } from "#runtime/log.ts"
import { Failure, type Input, type Run, UsageError, type World } from "../command.ts"
import { startLocalCluster } from "../local-cluster.ts"
import { keepSaving, loadCluster, saveCluster } from "../saved-cluster.ts"

export const run: Run = async (input, world) => {
  const wanted = read(input)
  const saved = wanted.data && (await loadCluster(wanted.data))
  const manifests = await readManifests(wanted.load)
  const registries = wanted.registries ? await readRegistries(wanted.registries) : undefined
  const clock = scaledClock(world.clock, wanted.speed)
  const log = createLogger({ level: "warn", clock })
  const local = await startLocalCluster({
    clock,
    nodes: wanted.nodes,
    registries,
    saved: saved || undefined,
    log,
  })
  const serving = await serveHttp(local.cluster.transport, { port: wanted.port }).catch(error => {
    throw new Failure(`--port ${wanted.port}: ${error.message}`)
  })
  const kubeconfig = wanted.kubeconfig ?? join(tmpdir(), `aim-up-${serving.port}.kubeconfig`)
  await writeFile(kubeconfig, kubeconfigFor(serving.url), { mode: 0o600 }).catch(error => {
    throw new Failure(`--write-kubeconfig ${kubeconfig}: ${error.message}`)
  })
  if (!saved) await local.apply(...manifests)
  // Checked first: a folder that cannot be written is reported now, and not after an hour's work.
  if (wanted.data) await saveCluster(local.cluster, wanted.data)
  world.say(
    welcome({ url: serving.url, kubeconfig, nodes: wanted.nodes, program: world.program, isRestored: Boolean(saved) }),
  )

  const keeping = wanted.data ? keepSaving(local.cluster, wanted.data, world) : undefined
  await new Promise<void>(done => world.signal.addEventListener("abort", () => done(), { once: true }))
  await serving.close()
  await local.stop()
  await keeping
  const isSaved = !wanted.data || (await saveAtTheEnd(local.cluster, wanted.data, world))
  if (!wanted.kubeconfig) await rm(kubeconfig, { force: true })
  return { text: "", exitCode: isSaved ? 0 : 1 }
}

/** Ctrl-C is not a failure, but losing the changes since the last save is. */
const saveAtTheEnd = (cluster: Cluster, folder: string, { say }: Pick<World, "say">): Promise<boolean> =>
  saveCluster(cluster, folder).then(
    () => true,
    error => {
      say(`${error.message}\nThe last changes are lost.`)
      return false
    },
  )

function read({ options }: Input) {
  const number = (name: string, least: number, most: number) => {
    const text = String(options[name])
    const value = Number(text)
    if (text.trim() === "" || !Number.isFinite(value) || value < least || value > most)
      throw new UsageError(`--${name}: ${text} is not a number from ${least} to ${most}`)
    return value
  }
  return {
    nodes: Math.floor(number("nodes", 0, 1000)),
    port: Math.floor(number("port", 0, 65_535)),
    speed: number("speed", 0.1, 1000),
    load: (options.load as string[] | undefined) ?? [],
    kubeconfig: options.writeKubeconfig as string | undefined,
    data: options.data as string | undefined,
    registries: options.registries as string | undefined,
  }
}

async function readManifests(files: readonly string[]) {
  const all: unknown[] = []
  for (const file of files) {
    const { manifests, errors } = parseManifests(await readText(file, "--load"))
    const [first] = errors
    if (first) throw new Failure(`${file}:${first.line}: ${first.message}`)
    all.push(...manifests.map(({ value }) => value))
  }
  return all
}

async function readRegistries(file: string) {
  const text = await readText(file, "--registries")
  try {
    return parseRegistries(text)
  } catch (error) {
    throw new Failure(`--registries ${file}: ${(error as Error).message}`)
  }
}

const readText = (file: string, option: string) =>
  readFile(file, "utf8").catch(error => {
    throw new Failure(`${option} ${file}: ${error.code === "ENOENT" ? "no such file" : error.message}`)
  })

const kubeconfigFor = (server: string) => `apiVersion: v1
kind: Config
clusters: [{name: aim, cluster: {server: "${server}"}}]
users: [{name: aim, user: {}}]
contexts: [{name: aim, context: {cluster: aim, user: aim, namespace: default}}]
current-context: aim
`

function welcome(facts: {
  url: string
  kubeconfig: string
  nodes: number
  program: string
  isRestored: boolean
}): string {
  const { url, kubeconfig, nodes, program, isRestored } = facts
  return `${isRestored ? "The cluster is back" : "A cluster is up"}: ${nodes} nodes, our controllers running, at ${url}

  export KUBECONFIG=${resolve(kubeconfig)}
  kubectl get nodes
  kubectl create deployment web --image=nginx:1 --replicas=3
  ${program} status -w

It lives in this process and simulates what runs on its nodes; docs/cluster-sim.md says what it does not do.
Ctrl-C ends it.`
}
