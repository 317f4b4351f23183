import { runsInCluster } from "#runtime/client/in-cluster.ts"
import { type Client, type Connected, connect, createClient } from "#runtime/client/index.ts"
import type { Connection, World } from "./command.ts"

type Surroundings = Pick<World, "variables" | "clock" | "random" | "version"> & { onWarning(message: string): void }

/** Loaded by the commands that talk to a cluster, and by no other. */
export function reach(connection: Connection, { variables, clock }: Surroundings): Promise<Connected> {
  const { kubeconfig, context, isUnattended = false } = connection
  // A program named in a kubeconfig is run for a person at a command line, never by a controller or in a pod.
  const allowExec = !isUnattended && !runsInCluster(variables)
  return connect({ kubeconfig, context, clock, env: variables, allowExec })
}

export async function clientFor(connection: Connection, surroundings: Surroundings): Promise<Client> {
  const { transport } = await reach(connection, surroundings)
  const { clock, random, version, onWarning } = surroundings
  return createClient({ transport, clock, random, userAgent: `aim/${version}`, onWarning })
}
