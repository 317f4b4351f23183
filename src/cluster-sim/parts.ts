import type { Instant } from "#runtime/clock.ts"
import { type Lag, lagging } from "./faults/lag.ts"
import type { SimulatedGateway } from "./gateway-api/index.ts"
import { eventExpiry } from "./physics/event-expiry.ts"
import type { Measured } from "./physics/kube-controllers/autoscaler-plan.ts"
import { controllerManager } from "./physics/kube-controllers/index.ts"
import {
  addNodes,
  createRegistries,
  type NodeSpec,
  type Nodes,
  type NodesOptions,
  nodeLifecycle,
  nodes,
  parseImage,
  parseRegistriesFile,
  type Registries,
  type RegistryOptions,
  scheduler,
} from "./physics/node/index.ts"
import type { Part, PhysicsWorld } from "./physics/world.ts"

/** Registries as described by a file. Its times are relative to the start of the cluster. */
export type RegistriesDescription = (now: Instant) => readonly RegistryOptions[]

/** Throws a `RegistriesFileError` with everything that is wrong with the file. */
export function parseRegistries(text: string): RegistriesDescription {
  parseRegistriesFile(text, { now: 0 })
  return now => parseRegistriesFile(text, { now })
}

export type PartsOptions = Omit<NodesOptions, "registries"> & {
  /** A number of nodes, or a list of them. */
  nodes?: number | readonly NodeSpec[]
  /** Controllers of the control plane that are behind or stopped, by name. Default: none. */
  lags?: Readonly<Record<string, Lag>>
  /** What autoscalers measure: the current value of a metric. Default: nothing, as without a metrics server. */
  measure?: Measured | undefined
  /** Default: every registry has every image. */
  registries?: RegistriesDescription | Registries | undefined
  /** Serves the Gateway API: its kinds are installed, and this gateway reads routes and reports on them. */
  gateway?: SimulatedGateway | undefined
  /** Called with the machines, by which a test stops kubelets and ends containers. */
  onMachines?: (machines: Nodes) => void
}

/** Registries that are shared between a cluster's nodes and other callers. Default: every registry has every image. */
export const openRegistries = (now: Instant, description?: RegistriesDescription): Registries =>
  createRegistries(description?.(now))

/** The current digest of an image's tag, as a registry answers it to clients that are no nodes. */
export function digestOf(
  registries: Registries,
  image: string,
  now: Instant,
): { digest: string } | { message: string } {
  const reference = parseImage(image)
  if ("invalid" in reference) return { message: reference.invalid }
  const answer = registries.pull(reference, { now, platform: "linux/amd64" })
  return answer.isFound ? { digest: answer.digest } : { message: answer.message }
}

/** How the containers of an image answer requests, as far as its description says. */
export function answersOf(registries: Registries, image: string): { errorRate?: number; latencyMs?: number } {
  const reference = parseImage(image)
  const { errorPercent, latencyMs } = ("invalid" in reference ? undefined : registries.find(reference)?.behaviour) ?? {}
  return {
    ...(errorPercent !== undefined && { errorRate: errorPercent / 100 }),
    ...(latencyMs !== undefined && { latencyMs }),
  }
}

/** All moving parts of a cluster, in starting order. */
export function everyPart(options: PartsOptions = {}): ((world: PhysicsWorld) => Part)[] {
  const { lags = {}, gateway, measure, ...rest } = options
  const controlPlane = [...controllerManager({ measure }), (world: PhysicsWorld) => scheduler(world)]
  return [
    ...controlPlane.map(make => lagging(make, lags)),
    ...(gateway ? [gateway.part] : []),
    eventExpiry,
    world => machines(world, rest),
  ]
}

/** Nodes, their kubelets, and the controller that detects when a kubelet is silent. */
function machines(world: PhysicsWorld, { nodes: wanted = 1, registries, onMachines, ...options }: PartsOptions): Part {
  const described = typeof registries === "object" ? registries : openRegistries(world.clock.now(), registries)
  const kubelets = nodes(world, { ...options, registries: described })
  onMachines?.(kubelets)
  const lifecycle = nodeLifecycle(world, kubelets)
  return {
    name: "machines",
    node: kubelets.node,
    start() {
      const stops = [kubelets.start(), lifecycle.start()]
      addNodes(world, wanted)
      return () => {
        for (const stop of stops.toReversed()) stop()
      }
    },
  }
}
