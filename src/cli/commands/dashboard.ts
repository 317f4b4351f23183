import { userOf } from "#operations/canary/operate.ts"
import { present, startDashboard, untilEnded } from "../browser/serve.ts"
import { connectionOf, type Input, type Run, UsageError } from "../command.ts"
import { namespaceOf } from "../namespace.ts"

/** On loopback, with the credentials of the user's kubeconfig. */
export const run: Run = async (input, world) => {
  const [port, operates] = [portOf(input), input.options.operate === true]
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

function portOf({ options }: Input): number {
  const text = String(options.port ?? "0")
  const port = Number(text)
  if (!/^\d{1,5}$/.test(text) || port > 65_535)
    throw new UsageError(`--port: ${text} is not a port: write a number up to 65535`)
  return port
}
