import { networkInterfaces } from "node:os"
import { UsageError } from "./command.ts"
import { metricsPort } from "./manifests/controller.ts"

/** Where `/metrics`, `/livez` and `/readyz` are served: in a pod where the kubelet asks, elsewhere only if asked for. */
export function readMetrics(options: Readonly<Record<string, unknown>>, isPod: boolean) {
  const port = readPort(options.metricsPort as string | undefined, isPod)
  const host = (options.metricsHost as string | undefined) ?? (isPod ? everyAddress() : "127.0.0.1")
  return port === 0 ? undefined : { host, port }
}

function readPort(text: string | undefined, isPod: boolean): number {
  if (text === undefined) return isPod ? metricsPort : 0
  if (/^\d{1,5}$/.test(text) && Number(text) <= 65_535) return Number(text)
  throw new UsageError(`--metrics-port: ${text} is not a port: write 1 to 65535, or 0 for none`)
}

/** The kubelet probes the pod's address, which may be IPv4 or IPv6. A kernel without IPv6 refuses `::`. */
const everyAddress = () =>
  Object.values(networkInterfaces()).some(addresses => addresses?.some(({ family }) => family === "IPv6"))
    ? "::"
    : "0.0.0.0"
