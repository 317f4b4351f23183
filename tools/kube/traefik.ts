import { type Component, insideKubeconfig, type Place } from "./components.ts"
import type { Gateway } from "./gateway.ts"

/** Traefik reads routes from the API server and carries the requests: those of Gateway API, and of its own kinds. */

/** Its Gateway, beside Contour's. */
export const traefikGateway: Gateway = { name: "traefik", namespace: "gateway" }

/** Ports inside the cluster's network, beside those of Contour. */
export const traefikPorts = { web: 15010, metrics: 15011 } as const

/** Traefik serves a listener at the port of the entry point that has the same. */
export const ofTraefik = { controllerName: "traefik.io/gateway-controller", port: traefikPorts.web } as const

export function traefik(place: Place, program: string): Component {
  return {
    name: "traefik",
    command: [
      program,
      "--global.checknewversion=false",
      "--global.sendanonymoususage=false",
      `--entrypoints.web.address=:${traefikPorts.web}`,
      `--entrypoints.metrics.address=127.0.0.1:${traefikPorts.metrics}`,
      "--metrics.prometheus=true",
      "--metrics.prometheus.entrypoint=metrics",
      "--ping=true",
      "--ping.entrypoint=metrics",
      "--providers.kubernetesgateway=true",
      "--providers.kubernetescrd=true",
    ],
    env: { KUBECONFIG: insideKubeconfig(place, "traefik") },
  }
}
