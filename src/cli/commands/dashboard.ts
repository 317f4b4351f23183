import { userOf } from "#operations/canary/operate.ts"
import { inClusterDashboard, refuseOwnOptions } from "../browser/in-cluster.ts"
import { present, startDashboard, untilEnded } from "../browser/serve.ts"
import { connectionOf, type Input, type Run, UsageError } from "../command.ts"
import { dashboardPort } from "../manifests/dashboard.ts"
import { namespaceOf } from "../namespace.ts"

export const run: Run = (input, world) =>
  input.options.inCluster === true ? runInCluster(input, world) : runForUser(input, world)

/** In a pod, with the credentials of each viewer. */
const runInCluster: Run = async (input, world) => {
  const [port, operates] = [portOf(input, dashboardPort), input.options.operate === true]
  const inCluster = await inClusterDashboard(input, world)
  const dashboard = await startDashboard(world, {
    ...{ port, operates, speed: 1, clusterNow: () => world.clock.now() },
    ...inCluster,
  })
  world.say(`The dashboard of ${inCluster.hosts[0]}${inCluster.basePath}/ listens on port ${dashboard.port}`)
  await untilEnded(world)
  await dashboard.close()
  return { text: "", exitCode: 0 }
}

/** On loopback, with the credentials of the user's kubeconfig. */
const runForUser: Run = async (input, world) => {
  refuseOwnOptions(input)
  const [port, operates] = [portOf(input, 0), input.options.operate === true]
  const namespace = await namespaceOf(input, world)
  const { describe, transport } = await world.reach(connectionOf(input))
  transport.close()
  const client = await world.connect(connectionOf(input))
  try {
    const user = await userOf(client)
    const aheadMs = Math.round(((client.serverTime() ?? world.clock.now()) - world.clock.now()) / 1000) * 1000
    const dashboard = await startDashboard(world, {
      ...{ port, operates, cluster: describe, speed: 1 },
      clusterNow: () => world.clock.now() + aheadMs,
      viewers: { by: "Key", viewer: { client, namespace }, user },
    })
    const end = present(dashboard, world, { opens: input.options.open !== false })
    await untilEnded(world)
    end()
    await dashboard.close()
    return { text: "", exitCode: 0 }
  } finally {
    client.close()
  }
}

function portOf({ options }: Input, usual: number): number {
  const text = String(options.port ?? usual)
  const port = Number(text)
  if (!/^\d{1,5}$/.test(text) || port > 65_535)
    throw new UsageError(`--port: ${text} is not a port: write a number up to 65535`)
  return port
}
