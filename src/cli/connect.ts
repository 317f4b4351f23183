import { formatDuration } from "#lib/duration.ts"
import { runsInCluster } from "#runtime/client/in-cluster.ts"
import { type Client, type Connected, connect, createClient } from "#runtime/client/index.ts"
import type { Transport } from "#runtime/client/transport.ts"
import type { Connection, World } from "./command.ts"

type Surroundings = Pick<World, "variables" | "clock" | "random" | "version" | "say"> & {
  onWarning(message: string): void
}

/** Loaded only by commands that connect to a cluster. */
export function reach(connection: Connection, { variables, clock }: Surroundings): Promise<Connected> {
  const { kubeconfig, context, isUnattended = false } = connection
  // A program named in a kubeconfig is run for a person at a command line, never by a controller or in a pod.
  const allowExec = !isUnattended && !runsInCluster(variables)
  return connect({ kubeconfig, context, clock, env: variables, allowExec })
}

export async function clientFor(connection: Connection, surroundings: Surroundings): Promise<Client> {
  const { transport: plain, describe: server } = await reach(connection, surroundings)
  const { clock, random, version, onWarning, say } = surroundings
  const transport = impatient(plain, { clock, say, server })
  return createClient({ transport, clock, random, userAgent: `aim/${version}`, onWarning })
}

const patienceMs = 3000

/** Reports once that the server does not answer: a request may take a minute, and silence looks like a broken program. */
export function impatient(
  transport: Transport,
  { clock, say, server }: Pick<World, "clock" | "say"> & { server: string },
): Transport {
  let isSaid = false
  const complain = () => {
    if (!isSaid) say(`${server} has not answered for ${formatDuration(patienceMs)}; still waiting (Ctrl-C ends it)`)
    isSaid = true
  }
  return {
    ...transport,
    async send(request) {
      // A watch is silent until something changes.
      if (request.longLived) return await transport.send(request)
      const cancel = clock.after(patienceMs, complain)
      try {
        return await transport.send(request)
      } finally {
        cancel()
      }
    },
  }
}
