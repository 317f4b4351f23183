import { once } from "node:events"
import * as net from "node:net"
import { afterEach } from "vitest"
import { type Reply, testServer } from "#runtime/client/test-server.ts"
import { type Clock, systemClock } from "#runtime/clock.ts"
import { type Destination, systemDial } from "./connect.ts"

export const cleanups: (() => unknown)[] = []
afterEach(async () => {
  for (const cleanup of cleanups.splice(0).reverse()) await cleanup()
})

export async function serve(reply: Reply, options: Parameters<typeof testServer>[1] = {}) {
  const server = await testServer(reply, options)
  cleanups.push(() => server.close())
  return server
}

/** A server that is no HTTP server. */
export async function serveRaw(onConnection: (socket: net.Socket) => void): Promise<number> {
  const sockets = new Set<net.Socket>()
  const server = net.createServer(socket => {
    sockets.add(socket.on("error", () => {}))
    onConnection(socket)
  })
  await once(server.listen(0, "127.0.0.1"), "listening")
  cleanups.push(() => {
    for (const socket of sockets) socket.destroy()
    server.close()
  })
  return (server.address() as net.AddressInfo).port
}

/** A clock that a test can push forward. */
export function movableClock() {
  let offset = 0
  const clock: Clock = {
    ...systemClock,
    now: () => systemClock.now() + offset,
    monotonic: () => systemClock.monotonic() + offset,
  }
  return {
    clock,
    advance: (ms: number) => {
      offset += ms
    },
  }
}

/**
 * The internet: names with public addresses, all of them played by one server on loopback, without TLS. What matters is
 * where we would have gone.
 */
export function internet(port: number, names: Record<string, string[]>) {
  const dialled: Destination[] = []
  const looked: string[] = []
  const real = systemDial()
  return {
    dialled,
    looked,
    options: {
      lookup: async (name: string) => {
        looked.push(name)
        return names[name] ?? []
      },
      dial: (to: Destination, signal: AbortSignal) => {
        dialled.push(to)
        return real({ address: "127.0.0.1", port }, signal)
      },
    },
  }
}
