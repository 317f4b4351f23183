import { randomInt } from "node:crypto"
import { once } from "node:events"
import { readFileSync } from "node:fs"
import { createServer } from "node:net"

/** The kernel gives ports from here on to connections and to listeners that ask for none. */
const kernelsFirst = Number(readFileSync("/proc/sys/net/ipv4/ip_local_port_range", "utf8").trim().split(/\s+/)[0])

/**
 * A loopback port for a program that wants a number. It is below those of the kernel, which could give it away before the
 * program has started, or while it is stopped.
 */
export async function unusedPort(): Promise<number> {
  for (;;) {
    const port = randomInt(Math.max(1024, kernelsFirst - 16_000), kernelsFirst)
    if (await isFree(port)) return port
  }
}

async function isFree(port: number): Promise<boolean> {
  const listener = createServer().listen(port, "127.0.0.1")
  try {
    await once(listener, "listening")
  } catch {
    return false
  }
  await new Promise(resolve => listener.close(resolve))
  return true
}
