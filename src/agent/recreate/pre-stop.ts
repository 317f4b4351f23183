import { type ClientRequest, request as httpRequest } from "node:http"
import { request as httpsRequest } from "node:https"
import { isIPv6 } from "node:net"
import type { Clock } from "#runtime/clock.ts"
import { sleep } from "#runtime/clock.ts"
import type { ContainerPort, ContainerRuntime, Recorded } from "#runtime/cri/index.ts"

type HttpGet = NonNullable<NonNullable<Recorded["preStop"]>["httpGet"]>

export type PreStopContext = { runtime: ContainerRuntime; clock: Clock; signal: AbortSignal }

/**
 * Runs the preStop handler of a container as the kubelet does, for at most so long. The handler comes from the
 * annotations that the kubelet put on the container, never from an object of the API. Throws if it fails: the container
 * is stopped all the same, as by the kubelet.
 */
export async function runPreStop(
  { runtime, clock, signal }: PreStopContext,
  { id, recorded, forMs }: { id: string; recorded: Recorded; forMs: number },
): Promise<void> {
  const { exec, httpGet, sleep: pause } = recorded.preStop ?? {}
  if (exec) {
    const timeoutSeconds = Math.ceil(forMs / 1000)
    const { exitCode, output } = await runtime.execSync(id, { command: exec.command ?? [], timeoutSeconds }, { signal })
    if (exitCode !== 0) throw new Error(`preStop ended with exit code ${exitCode}: ${output.slice(0, 200)}`)
  } else if (httpGet) {
    const address = await addressOf(runtime, id, signal)
    await get(targetOf(httpGet, recorded.ports, address), AbortSignal.any([signal, AbortSignal.timeout(forMs)]))
  } else if (pause) await sleep(clock, Math.min(pause.seconds * 1000, forMs), signal)
}

async function addressOf(runtime: ContainerRuntime, id: string, signal: AbortSignal): Promise<string> {
  const [container] = await runtime.listContainers({ id }, { signal })
  const sandbox = container && (await runtime.podSandboxStatus(container.podSandboxId, { signal }))
  const address = sandbox?.addresses[0]
  if (!address) throw new Error("preStop httpGet: the pod has no address of its own")
  return address
}

export type Target = { url: string; headers: Record<string, string> }

/** Where a handler points. Only to the pod's own address: the agent is no way around network policies. */
export function targetOf(
  { host, port, scheme = "HTTP", path = "/", httpHeaders = [] }: HttpGet,
  ports: readonly ContainerPort[],
  address: string,
): Target {
  if (host && host !== address) throw new Error(`preStop httpGet: ${host} is not the pod's own address`)
  const number =
    typeof port === "number" ? port : (ports.find(({ name }) => name === port)?.containerPort ?? Number(port))
  if (!(number > 0 && number < 65_536)) throw new Error(`preStop httpGet: the container has no port ${port}`)
  const literal = isIPv6(address) ? `[${address}]` : address
  return {
    url: `${scheme.toLowerCase()}://${literal}:${number}${path.startsWith("/") ? path : `/${path}`}`,
    headers: Object.fromEntries(httpHeaders.map(({ name, value }) => [name, value])),
  }
}

/** One request, without redirects. Nothing of the answer is kept. */
function get({ url, headers }: Target, signal: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    const isTls = url.startsWith("https:")
    // The kubelet does not verify the certificate of a pod either.
    const options = { headers, signal, ...(isTls && { rejectUnauthorized: false }) }
    const sent: ClientRequest = (isTls ? httpsRequest : httpRequest)(url, options, answer => {
      const { statusCode = 0 } = answer
      answer.destroy()
      if (statusCode >= 200 && statusCode < 400) resolve()
      else reject(new Error(`preStop httpGet: answered with status ${statusCode}`))
    })
    sent.on("error", reject)
    sent.end()
  })
}
