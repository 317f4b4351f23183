import { createServer } from "node:http"
import type { AddressInfo } from "node:net"
import { expect, test } from "vitest"
import { systemClock } from "#runtime/clock.ts"
import type { ContainerRuntime, Recorded } from "#runtime/cri/index.ts"
import { runPreStop, targetOf } from "./pre-stop.ts"

const ports = [{ name: "web", containerPort: 8080 }]

test("a handler points to the pod's own address, by number or name of a port", () => {
  expect(targetOf({ port: 80 }, ports, "10.0.0.7").url).toBe("http://10.0.0.7:80/")
  expect(targetOf({ port: "web", path: "drain", scheme: "HTTPS" }, ports, "10.0.0.7").url).toBe(
    "https://10.0.0.7:8080/drain",
  )
  expect(targetOf({ port: "9090" }, ports, "fd00::7").url).toBe("http://[fd00::7]:9090/")
  expect(targetOf({ port: 80, host: "10.0.0.7" }, ports, "10.0.0.7").url).toBe("http://10.0.0.7:80/")
})

test("and to no other", () => {
  expect(() => targetOf({ port: 80, host: "169.254.169.254" }, ports, "10.0.0.7")).toThrow("not the pod's own address")
  expect(() => targetOf({ port: "admin" }, ports, "10.0.0.7")).toThrow("no port admin")
})

test("httpGet sends one request with its headers, and follows no redirect", async () => {
  const seen: string[] = []
  const server = createServer((request, response) => {
    seen.push(`${request.url} ${request.headers["x-why"]}`)
    response.writeHead(302, { location: "/elsewhere" }).end()
  })
  await new Promise<void>(resolve => server.listen(0, "127.0.0.1", resolve))
  const { port } = server.address() as AddressInfo
  const runtime = {
    listContainers: async () => [{ podSandboxId: "s" }],
    podSandboxStatus: async () => ({ addresses: ["127.0.0.1"] }),
  } as unknown as ContainerRuntime
  const httpGet = { port, path: "/drain", httpHeaders: [{ name: "x-why", value: "restart" }] }
  const recorded = { ports: [], preStop: { httpGet } } as unknown as Recorded
  const context = { runtime, clock: systemClock, signal: new AbortController().signal }
  await runPreStop(context, { id: "c", recorded, forMs: 5000 })
  expect(seen).toEqual(["/drain restart"])
  await new Promise(resolve => server.close(resolve))
})
