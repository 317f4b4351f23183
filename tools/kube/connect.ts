import type { Socket } from "node:net"

/** Carries bytes both ways between two sockets until either is gone, and then ends the other. */
export function connectBoth(one: Socket, other: Socket): void {
  const ways = [
    [one, other],
    [other, one],
  ] as const
  for (const [from, to] of ways) {
    from.setNoDelay(true)
    from.pipe(to)
    from.on("error", () => to.destroy())
    from.on("close", () => to.destroy())
  }
}
