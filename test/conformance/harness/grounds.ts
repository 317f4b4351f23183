import { mkdtempSync, rmSync } from "node:fs"
import { createServer } from "node:http"
import { Agent, request as httpsRequest } from "node:https"
import type { AddressInfo } from "node:net"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { floor } from "../../support/floor.ts"
import type { Ground, RawAnswer } from "./floor.ts"
import { faults, images } from "./images.ts"

/** The real Kubernetes that all tests of a run share, with the images and the faulty registry that cases ask for. */
export async function realGround(): Promise<Ground> {
  const { access, kubectl, kubeconfig, registry, pushImage, expose } = floor()
  // The server closes a connection that was not used for 90 s: it must not be one on which a request is on its way.
  const agent = new Agent({ keepAlive: true, timeout: 30_000, ca: access.certificateAuthority })
  const home = mkdtempSync(join(tmpdir(), "aim-conformance-"))
  const faulty = await serveFaults()
  await Promise.all([
    expose(faulty.port),
    ...images.map(({ name, script }) => pushImage(`${name}:1`, { command: ["/bin/sh", "-c", script] })),
  ])
  const faultyHost = `127.0.0.1:${faulty.port}`
  return {
    name: "real",
    kubectl,
    kubeconfig,
    home,
    registry,
    faulty: faultyHost,
    // A crashing container is left alone for a minute and more; its kubelet may say so only the next time.
    patienceMs: 150_000,
    words: [
      [access.server, "SERVER"],
      [access.server.replace("https://", ""), "SERVER"],
      [registry, "REGISTRY"],
      [faultyHost, "FAULTY"],
    ],
    send({ method, path, headers, body, signal }) {
      const { promise, resolve, reject } = Promise.withResolvers<RawAnswer>()
      const sent = httpsRequest(new URL(access.server + path), {
        method,
        agent,
        signal,
        headers: {
          authorization: `Bearer ${access.token}`,
          ...headers,
          ...(body !== undefined && { "content-length": Buffer.byteLength(body) }),
        },
      })
      sent.once("error", reject)
      sent.once("response", answer =>
        resolve({
          status: answer.statusCode ?? 0,
          headers: answer.headers as Record<string, string | undefined>,
          body: answer,
        }),
      )
      sent.end(body)
      return promise
    },
    async close() {
      agent.destroy()
      await faulty.close()
      rmSync(home, { recursive: true, force: true })
    },
  }
}

/** A registry that answers every pull with the fault that the repository's name asks for. */
async function serveFaults() {
  const server = createServer((asked, answer) => {
    const repository = /^\/v2\/([^/]+)\//.exec(asked.url ?? "")?.[1] ?? ""
    const { status = 404, headers = {} } = faults[repository] ?? {}
    answer.writeHead(status, { "content-type": "application/json", ...headers })
    answer.end(asked.method === "HEAD" ? undefined : JSON.stringify({ errors: [{ code: "ERROR", message: "ERROR" }] }))
  })
  await new Promise<void>(resolve => server.listen(0, "127.0.0.1", resolve))
  const { port } = server.address() as AddressInfo
  return {
    port,
    close: () =>
      new Promise<void>(resolve => {
        server.close(() => resolve())
        server.closeAllConnections()
      }),
  }
}
