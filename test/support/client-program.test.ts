import { spawn } from "node:child_process"
import { createServer } from "node:http"
import type { AddressInfo } from "node:net"
import { join } from "node:path"
import { text } from "node:stream/consumers"
import { expect, test } from "vitest"
import type { ClientOptions } from "./clients.ts"

test("a client that keeps its connections opens no others, also when answers take longer than requests come", async () => {
  let opened = 0
  const server = createServer((_, answer) => {
    setTimeout(() => answer.end("v1"), 100)
  })
  server.on("connection", () => opened++)
  await new Promise<void>(resolve => server.listen(0, "127.0.0.1", resolve))
  const { port } = server.address() as AddressInfo
  const options: ClientOptions = {
    ...{ addresses: [`127.0.0.1:${port}`], path: "/", headers: {}, perSecond: 100, connections: 2 },
    ...{ requestsMost: 20, secondsMost: 60, answerSeconds: 30 },
  }
  const program = join(import.meta.dirname, "client-program.ts")
  const client = spawn(process.execPath, [program, JSON.stringify(options)], { stdio: ["pipe", "pipe", "inherit"] })
  const { result } = JSON.parse((await text(client.stdout)).trim().split("\n").at(-1)!)
  server.close()
  expect(result).toMatchObject({ sent: 20, failures: [], answers: [{ version: "v1", status: 200, count: 20 }] })
  expect(opened).toBe(2)
})
