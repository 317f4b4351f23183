// `npm run cluster`: a real Kubernetes in the foreground, until Ctrl-C.
import { dirname } from "node:path"
import { parseArgs } from "node:util"
import { addOns } from "./kube/add-ons.ts"
import { startCluster } from "./kube/cluster.ts"
import { story } from "./kube/control.ts"
import { gateway } from "./kube/gateway.ts"
import { removeLeftovers } from "./kube/state.ts"

const help = `Starts a real Kubernetes cluster on this machine and keeps it until Ctrl-C.

  npm run cluster -- [options]

  --nodes N      how many nodes kwok plays (2)
  --no-kubelet   no real node: only the control plane and the nodes of kwok
  --containerd V which containerd the real node has: 1.6 (Debian's) or 2.3.5
  --proxy        kube-proxy: Services are reached by their addresses
  --gateway      Gateway API by Contour and Envoy, with a Gateway for routes of every namespace
  --traefik      Traefik, with a Gateway of its own and its kinds
  --prometheus   Prometheus, which scrapes Envoy, Traefik and the pods with the annotation prometheus.io/scrape
  --clean-up     remove what clusters left whose process was killed, and end
  --help         this text

It needs Linux and root. What is missing is built (Go), installed (apt-get) or fetched (pip, for --gateway) the first time.
`

process.exitCode = await main().catch(error => {
  say(story(error))
  return 1
})

async function main(): Promise<number> {
  const known = {
    nodes: { type: "string", default: "2" },
    kubelet: { type: "boolean", default: true },
    containerd: { type: "string", default: "1.6" },
    proxy: { type: "boolean", default: false },
    gateway: { type: "boolean", default: false },
    traefik: { type: "boolean", default: false },
    prometheus: { type: "boolean", default: false },
  } as const
  const { values } = parseArgs({
    options: { ...known, "clean-up": { type: "boolean" }, help: { type: "boolean" } },
    allowNegative: true,
  })
  if (values.help) return print(help)
  if (values["clean-up"]) {
    const removed = await removeLeftovers()
    return print(removed.length > 0 ? `removed ${removed.join(", ")}\n` : "nothing was left\n")
  }
  const nodes = Number(values.nodes)
  if (!Number.isInteger(nodes) || nodes < 0) throw new Error(`--nodes takes a number, not ${values.nodes}`)
  const { kubelet, containerd } = values
  if (containerd !== "1.6" && containerd !== "2.3.5")
    throw new Error(`--containerd takes 1.6 or 2.3.5, not ${containerd}`)

  const stopping = new AbortController()
  const stop = Promise.withResolvers<void>()
  for (const name of ["SIGINT", "SIGTERM", "SIGHUP"] as const)
    process.on(name, () => {
      stopping.abort(new Error(`stopped by ${name}`))
      stop.resolve()
    })

  const { signal } = stopping
  const wanted = addOns.filter(name => values[name])
  const started = startCluster({ kwokNodes: nodes, kubelet, containerd, addOns: wanted, say, signal })
  const cluster = await started.catch(error => {
    if (!signal.aborted) throw error
    say("stopped before it was ready; nothing is left")
  })
  if (!cluster) return 1
  print(`
A cluster is up (${(cluster.startedInMs / 1000).toFixed(1)} s). To use it:

  export KUBECONFIG=${cluster.kubeconfig}
  export PATH=${dirname(cluster.kubectl)}:$PATH
  kubectl get nodes
${
  cluster.registry
    ? `
Images go to its registry, and pods name them the same way:

  skopeo copy --dest-tls-verify=false SOURCE docker://${cluster.registry}/NAME:TAG
`
    : ""
}${cluster.urls.gateway ? gatewayHelp(cluster.urls.gateway) : ""}${
  cluster.urls.prometheus
    ? `
Prometheus: ${cluster.urls.prometheus}
`
    : ""
}
Logs:      ${cluster.folder}/logs
Go inside: nsenter --target ${cluster.pid} --all
Ctrl-C ends it and leaves nothing behind.
`)
  const isWanted = await Promise.race([stop.promise.then(() => true), cluster.ended.then(() => false)])
  if (!isWanted) say("the cluster ended by itself")
  const since = Date.now()
  await cluster.stop()
  say(`stopped in ${((Date.now() - since) / 1000).toFixed(1)} s; nothing is left`)
  return isWanted ? 0 : 1
}

function gatewayHelp(url: string): string {
  return `
Routes name the Gateway ${gateway.name} in the namespace ${gateway.namespace}; requests go to ${url} with their host:

  curl -H "Host: shop.example.com" ${url}/
`
}

function print(text: string): number {
  process.stdout.write(text)
  return 0
}

function say(line: string) {
  process.stderr.write(`cluster: ${line}\n`)
}
