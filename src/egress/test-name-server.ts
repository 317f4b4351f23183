import { createSocket, type Socket } from "node:dgram"
import { once } from "node:events"
import type { AddressInfo } from "node:net"
import { cleanups } from "./test-servers.ts"

/**
 * A name server that knows these names, says nothing about `*.evil.test` nor about the IPv6 of `four.test`, and that there
 * are no others.
 */
export async function nameServer(names: Record<string, string>) {
  const asked: string[] = []
  const socket: Socket = createSocket("udp4")
  socket.on("message", (query, from) => {
    const { name, type, end } = questionOf(query)
    asked.push(name)
    if (name.endsWith(".evil.test") || (name === "four.test" && type !== 1)) return
    const address = type === 1 ? names[name] : undefined
    const known = names[name] !== undefined
    const head = Buffer.from(query.subarray(0, end))
    head.writeUInt16BE(known ? 0x8180 : 0x8183, 2)
    head.writeUInt16BE(address ? 1 : 0, 6)
    head.writeUInt16BE(0, 8)
    head.writeUInt16BE(0, 10)
    const answer = address
      ? Buffer.from([0xc0, 12, 0, 1, 0, 1, 0, 0, 0, 60, 0, 4, ...address.split(".").map(Number)])
      : Buffer.alloc(0)
    socket.send(Buffer.concat([head, answer]), from.port, from.address)
  })
  socket.bind(0, "127.0.0.1")
  await once(socket, "listening")
  cleanups.push(() => socket.close())
  return { asked, servers: [`127.0.0.1:${(socket.address() as AddressInfo).port}`] }
}

function questionOf(query: Buffer): { name: string; type: number; end: number } {
  const labels: string[] = []
  let at = 12
  for (let length = query[at]!; length > 0; length = query[at]!) {
    labels.push(query.toString("latin1", at + 1, at + 1 + length))
    at += 1 + length
  }
  return { name: labels.join(".").toLowerCase(), type: query.readUInt16BE(at + 1), end: at + 5 }
}
