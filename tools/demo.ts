// `npm run demo`: a fleet of tenants is upgraded, tier by tier, on a real Kubernetes that this starts and stops.
import { type ChildProcess, spawn } from "node:child_process"
import { writeFileSync } from "node:fs"
import { dirname, join } from "node:path"
import { type Cluster, startCluster } from "./kube/cluster.ts"
import { run } from "./kube/command.ts"
import { repository } from "./kube/folders.ts"
import { pushImage } from "./kube/images.ts"

const say = (line: string) => process.stdout.write(`\n${line}\n`)
const children: ChildProcess[] = []
const stopping = new AbortController()
for (const signal of ["SIGINT", "SIGTERM"] as const) process.once(signal, () => stopping.abort())

const tiers = ["early", "", "late"]

const serviceImage = (defaultImage: string) => ({
  apiVersion: "autoimagemanager.io/v1alpha1",
  kind: "ServiceImage",
  metadata: { name: "demo" },
  spec: {
    target: { apiVersion: "services.example.com/v1alpha1", kind: "Dicom" },
    defaultImage,
    tiers: tiers.map((upgradeTier, index) => ({ upgradeTier, priority: tiers.length - index })),
  },
})

const tenants = () =>
  tiers.flatMap(tier =>
    [1, 2, 3].map(index => ({
      apiVersion: "services.example.com/v1alpha1",
      kind: "Dicom",
      metadata: { name: `${tier || "standard"}-${index}`, namespace: "default", labels: { "upgrade-tier": tier } },
      spec: { failureHaltsUpdate: true },
    })),
  )

say("Starting a real Kubernetes: etcd, kube-apiserver, controllers, a kubelet with containerd, a registry.")
const cluster = await startCluster({
  kwokNodes: 0,
  say: line => process.stdout.write(`  ${line}\n`),
  signal: stopping.signal,
})
try {
  await show(cluster)
} catch (error) {
  if (!stopping.signal.aborted) throw error
} finally {
  for (const child of children) child.kill("SIGTERM")
  say("Stopping the cluster; nothing is left behind.")
  await cluster.stop()
}

async function show({ kubeconfig, kubectl, registry, folder }: Cluster) {
  const env = { ...process.env, KUBECONFIG: kubeconfig, PATH: `${dirname(kubectl)}:${process.env.PATH}` }
  const kube = (...args: string[]) => run(kubectl, args, { env, signal: stopping.signal })
  const aim = join(repository, "bin/aim")

  say("Two versions of a service are pushed to its registry, v1 and v2.")
  const [v1, v2] = await Promise.all(
    ["v1", "v2"].map(async tag => (await pushImage(registry!, `dicom-service:${tag}`)).reference),
  )

  say("Nine tenants sign up, three in each tier. None of them names an image: a ServiceImage does.")
  const crds = join(folder, "crds.yaml")
  writeFileSync(crds, await run(aim, ["manifests", "crds"], { env }))
  await kube("apply", "-f", crds, "-f", join(repository, "examples/dicom/crd.yaml"))
  await kube("wait", "--for=condition=established", "crd", "--all")
  const fleet = join(folder, "fleet.json")
  writeFileSync(fleet, JSON.stringify({ apiVersion: "v1", kind: "List", items: [serviceImage(v1!), ...tenants()] }))
  await kube("apply", "-f", fleet)
  for (const [program, ...args] of [[aim, "controller"], [join(repository, "examples/dicom/run")]] as string[][])
    children.push(spawn(program!, args, { env, stdio: "ignore" }))
  await watchUntilComplete(aim, env)

  say(`kubectl patch si/demo: the fleet is to run v2. early goes first, late waits for everybody else.`)
  await kube("patch", "si/demo", "--type=merge", `--patch=${JSON.stringify({ spec: { defaultImage: v2 } })}`)
  await watchUntilComplete(aim, env)
  process.stdout.write(`\n${await kube("get", "dicoms,pods")}`)
  say("Every pod above really runs, from an image that was really pulled. To try things yourself: npm run cluster")
}

/** The live view a user would have open, until the rollout is complete for the spec as it is now. */
async function watchUntilComplete(aim: string, env: NodeJS.ProcessEnv) {
  const view = spawn(aim, ["status", "si/demo", "--watch"], { env, stdio: ["ignore", "inherit", "inherit"] })
  children.push(view)
  try {
    await run(aim, ["wait", "si/demo", "--timeout", "5m", "--quiet"], { env, signal: stopping.signal })
  } finally {
    view.kill("SIGINT")
    await new Promise(resolve =>
      view.exitCode === null && view.signalCode === null ? view.once("close", resolve) : resolve(0),
    )
  }
}
