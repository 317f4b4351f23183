import { setFlagsFromString } from "node:v8"
import { type AgentLimits, runAgent } from "#agent/index.ts"
import { runsInCluster } from "#runtime/client/in-cluster.ts"
import { connectRuntime } from "#runtime/cri/index.ts"
import { createLogger, type LogLevel } from "#runtime/log.ts"
import { connectionOf, type Input, type Run, UsageError, type World } from "../command.ts"
import { readCount, readPercent } from "../count.ts"
import { usualSocket } from "../manifests/agent.ts"
import { readMetrics } from "../serve-metrics.ts"

export const run: Run = async (input, world) => {
  setFlagsFromString("--optimize-for-size")
  const { clock, random, signal } = world
  const wanted = read(input, world.variables)
  const { transport, describe } = await world.reach({ ...connectionOf(input), isUnattended: true })
  const log = createLogger({ level: wanted.logLevel, clock })
  const { nodeName, socketPath, limits, metrics } = wanted
  log.info("starting", { version: world.version, server: describe, node: nodeName, socket: socketPath, ...limits })
  const exitCode = await runAgent({
    node: { name: nodeName, runtime: connectRuntime({ socketPath, clock }) },
    limits,
    transport,
    metrics,
    clock,
    random,
    log,
    userAgent: `aim/${world.version}`,
    signal,
  })
  return { text: "", exitCode: exitCode === 0 ? 0 : 1 }
}

type Wanted = {
  nodeName: string
  socketPath: string
  limits: AgentLimits
  metrics: { host: string; port: number } | undefined
  logLevel: LogLevel
}

export function read({ options }: Pick<Input, "options">, variables: World["variables"]): Wanted {
  const nodeName = (options.nodeName as string | undefined) ?? variables.NODE_NAME ?? ""
  if (nodeName === "") throw new UsageError("--node-name is missing: write the name of the node, as kubectl get nodes")
  // It becomes part of a field selector.
  if (!/^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$/.test(nodeName) || nodeName.length > 253)
    throw new UsageError(`--node-name: ${nodeName} is not the name of a node`)
  if (process.platform === "win32") throw new UsageError("aim agent does not run on Windows nodes")
  const socketPath = (options.criSocket as string | undefined) ?? usualSocket
  if (!socketPath.startsWith("/")) throw new UsageError(`--cri-socket: ${socketPath} is not an absolute path`)
  return {
    nodeName,
    socketPath,
    limits: {
      stopsPerMinute: readCount("--stops-per-minute", options.stopsPerMinute as string),
      pullsPerNode: readCount("--pulls-per-node", options.pullsPerNode as string),
      imageGcHighThresholdPercent: readPercent("--image-gc-high-threshold", options.imageGcHighThreshold as string),
    },
    metrics: readMetrics(options, runsInCluster(variables)),
    logLevel: options.logLevel as LogLevel,
  }
}
