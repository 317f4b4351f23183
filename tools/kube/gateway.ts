import { readdirSync, readFileSync, writeFileSync } from "node:fs"
import { request } from "node:http"
import { join } from "node:path"
import { text } from "node:stream/consumers"
import { parseAllDocuments } from "yaml"
import { type Api, type Json, type Patience, until } from "./api.ts"
import { run } from "./command.ts"
import { type Component, insideKubeconfig, type Place } from "./components.ts"
import { network } from "./orders.ts"

/** Contour reads routes from the API server and configures Envoy, which carries the requests. */
export type GatewayPrograms = { contour: string; crds: string; envoy: string }

/** A Gateway. Its class has the same name. Routes of every namespace may name it. */
export type Gateway = { readonly name: string; readonly namespace: string }

/** The one of Contour. */
export const gateway = { name: "contour", namespace: "gateway" } as const

/**
 * Ports inside the cluster's network. They are below those that connections made inside get (see `inside.ts`).
 */
export const gatewayPorts = { envoy: 8080, envoyMetrics: 15005 } as const
const ports = { xds: 15001, http: 15002, health: 15003, debug: 15004 } as const

const adminSocket = (folder: string) => join(folder, "envoy.sock")

export function contour(place: Place, { contour }: GatewayPrograms): Component {
  const config = join(place.folder, "contour.yaml")
  writeFileSync(config, JSON.stringify({ gateway: { gatewayRef: gateway } }))
  const at = (name: string, port: number) => [`--${name}-address=127.0.0.1`, `--${name}-port=${port}`]
  return {
    name: "contour",
    command: [
      contour,
      "serve",
      `--kubeconfig=${insideKubeconfig(place, "contour")}`,
      `--config-path=${config}`,
      // Both programs are inside one sandbox, and nothing else is near them.
      "--insecure",
      "--disable-leader-election",
      // Kinds of Gateway API that are not in its standard CRDs.
      ...["tcproutes", "tlsroutes", "backendtlspolicies"].map(name => `--disable-feature=${name}`),
      `--ingress-status-address=${network.address}`,
      ...at("xds", ports.xds),
      ...at("http", ports.http),
      ...at("health", ports.health),
      ...at("debug-http", ports.debug),
      ...at("stats", gatewayPorts.envoyMetrics),
    ],
  }
}

/** Envoy with a bootstrap by Contour: where to ask for its configuration, and where its own administration listens. */
export async function envoy({ folder }: Place, { contour, envoy }: GatewayPrograms): Promise<Component> {
  const bootstrap = join(folder, "envoy.json")
  const source = ["--xds-address=127.0.0.1", `--xds-port=${ports.xds}`]
  await run(contour, ["bootstrap", bootstrap, `--admin-address=${adminSocket(folder)}`, ...source])
  return {
    name: "envoy",
    // A hot restart would need shared memory, which is the machine's and not the cluster's.
    command: [
      ...[envoy, "--config-path", bootstrap, "--service-cluster", "gateway", "--service-node", "envoy-0"],
      ...["--concurrency", "1", "--disable-hot-restart", "--log-level", "warning"],
      // What it logs of requests is in its file after a second instead of ten: a test that lost one reads it there.
      ...["--file-flush-interval-msec", "1000"],
    ],
  }
}

/** What Envoy's administration answers: `/clusters`, `/config_dump`, `/stats`. A socket in a folder has no network. */
export async function askEnvoy(folder: string, path: string): Promise<string> {
  const { promise, resolve, reject } = Promise.withResolvers<import("node:http").IncomingMessage>()
  request({ socketPath: adminSocket(folder), path, timeout: 10_000 }, resolve)
    .once("error", reject)
    .end()
  const answer = await promise
  const said = await text(answer)
  if (answer.statusCode !== 200) throw new Error(`asking Envoy for ${path}: ${answer.statusCode} ${said}`)
  return said
}

/** The kinds of Gateway API, and of what reads it, served. */
export async function installGatewayKinds(api: Api, folder: string, patience: Patience): Promise<void> {
  const files = readdirSync(folder, { recursive: true, encoding: "utf8" }).filter(name => /[.]ya?ml$/.test(name))
  const crds: Json[] = files
    .flatMap(name => parseAllDocuments(readFileSync(join(folder, name), "utf8")))
    .map(document => document.toJS())
    .filter(object => object?.kind === "CustomResourceDefinition")
  if (crds.length === 0) throw new Error(`no CRD is in ${folder}; remove that folder, and it is filled again`)
  await Promise.all(
    crds.map(async crd => {
      const { group, names, versions } = crd.spec
      const path = `/apis/apiextensions.k8s.io/v1/customresourcedefinitions/${crd.metadata.name}`
      // All at once keep the server busy, and one may get no answer in time. To apply it again changes nothing.
      await until(`${crd.metadata.name} is stored`, () => api.apply(path, crd), patience)
      for (const { name, served } of versions)
        if (served)
          await until(
            `${crd.metadata.name} is served`,
            () => api.get(`/apis/${group}/${name}/${names.plural}`),
            patience,
          )
    }),
  )
}

const gatewayApi = "/apis/gateway.networking.k8s.io/v1"
const pathOf = ({ name, namespace }: Gateway) => `${gatewayApi}/namespaces/${namespace}/gateways/${name}`

export async function createGateway(
  api: Api,
  gateway: Gateway,
  { controllerName, port }: { controllerName: string; port: number },
): Promise<void> {
  const { name, namespace } = gateway
  const apiVersion = "gateway.networking.k8s.io/v1"
  await api.apply(`/api/v1/namespaces/${namespace}`, {
    apiVersion: "v1",
    kind: "Namespace",
    metadata: { name: namespace },
  })
  await api.apply(`${gatewayApi}/gatewayclasses/${name}`, {
    ...{ apiVersion, kind: "GatewayClass", metadata: { name } },
    spec: { controllerName },
  })
  const everywhere = { namespaces: { from: "All" } }
  await api.apply(pathOf(gateway), {
    ...{ apiVersion, kind: "Gateway", metadata: { name, namespace } },
    spec: {
      gatewayClassName: name,
      listeners: [{ name: "http", protocol: "HTTP", port, allowedRoutes: everywhere }],
    },
  })
}

/** Contour's own: it lets Envoy listen at the port of a listener and 8000. */
export const ofContour = {
  controllerName: "projectcontour.io/gateway-controller",
  port: gatewayPorts.envoy - 8000,
} as const

/** What serves the Gateway has taken it over. */
export async function gatewayIsProgrammed(api: Api, gateway: Gateway, patience: Patience): Promise<void> {
  await until(
    `Gateway ${gateway.name} is programmed`,
    async () => {
      const { metadata, status } = await api.get(pathOf(gateway))
      return status?.conditions?.some(
        (each: Json) =>
          each.type === "Programmed" && each.status === "True" && each.observedGeneration === metadata.generation,
      )
    },
    patience,
  )
}

/** Contour has taken the Gateway, and Envoy has its first configuration. */
export async function gatewayIsUp(api: Api, folder: string, patience: Patience): Promise<void> {
  await gatewayIsProgrammed(api, gateway, patience)
  await until("Envoy is ready", async () => (await askEnvoy(folder, "/ready")).trim() === "LIVE", patience)
}
