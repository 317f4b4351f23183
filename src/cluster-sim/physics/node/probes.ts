import type { Instant } from "#lib/instant.ts"
import type { Json } from "../../object.ts"
import type { Container } from "../container-runtime/index.ts"
import { isWell } from "./behaviour.ts"

export type ProbeType = "startup" | "liveness" | "readiness"

/** One probe of one container of a pod: it lives as long as the pod and follows the container through its restarts. */
export type Probe = {
  readonly type: ProbeType
  readonly spec: Json
  readonly container: Json
  /** When the pod came to the node. Ticks are counted from then, not from the start of the container. */
  readonly since: Instant
  containerId: string | undefined
  isOnHold: boolean
  lastResult: boolean | undefined
  run: number
  cancel: (() => void) | undefined
}

export function probesOf(container: Json, since: Instant): Probe[] {
  const make = (type: ProbeType): Probe => ({
    type,
    spec: container[`${type}Probe`],
    container,
    since,
    containerId: undefined,
    isOnHold: false,
    lastResult: undefined,
    run: 0,
    cancel: undefined,
  })
  return (["startup", "liveness", "readiness"] as const).filter(type => container[`${type}Probe`]).map(make)
}

const periodMs = ({ spec }: Probe) => 1000 * (spec.periodSeconds ?? 10)

/** The first tick after a time. */
export function nextTick(probe: Probe, after: Instant): Instant {
  const period = periodMs(probe)
  return probe.since + period * (Math.floor((after - probe.since) / period) + 1)
}

/** Whether this tick probes the container. */
export function isDue({ spec, type }: Probe, container: Container, hasStarted: boolean, now: Instant): boolean {
  if (Math.floor((now - container.startedAt) / 1000) < (spec.initialDelaySeconds ?? 0)) return false
  return type === "startup" ? !hasStarted : hasStarted
}

/** Probes the container and counts. Returns the result once a threshold is reached; undefined before that. */
export function ask(
  probe: Probe,
  container: Container,
  now: Instant,
): { isFine: boolean; verdict: boolean | undefined } {
  const isFine = isWell(container.behaviour, now - container.startedAt)
  probe.run = probe.lastResult === isFine ? probe.run + 1 : 1
  probe.lastResult = isFine
  const threshold = isFine ? (probe.spec.successThreshold ?? 1) : (probe.spec.failureThreshold ?? 3)
  return { isFine, verdict: probe.run < threshold ? undefined : isFine }
}

const titles = { startup: "Startup", liveness: "Liveness", readiness: "Readiness" }

/** The kubelet's message for a failed probe. */
export function failureMessage({ type, spec, container }: Probe, ip: string): string {
  const port = (asked: Json) =>
    typeof asked === "number"
      ? asked
      : (container.ports?.find(({ name }: Json) => name === asked)?.containerPort ?? asked)
  const begin = `${titles[type]} probe failed: `
  if (spec.httpGet) {
    const { host = ip, path = "/", scheme = "HTTP" } = spec.httpGet
    const address = `${host || ip}:${port(spec.httpGet.port)}`
    const url = `${scheme.toLowerCase()}://${address}${path.startsWith("/") ? "" : "/"}${path}`
    return `${begin}Get "${url}": dial tcp ${address}: connect: connection refused`
  }
  if (spec.tcpSocket)
    return `${begin}dial tcp ${spec.tcpSocket.host || ip}:${port(spec.tcpSocket.port)}: connect: connection refused`
  if (spec.grpc)
    return `${begin}timeout: failed to connect service "${ip}:${spec.grpc.port}" within ${spec.timeoutSeconds ?? 1}s: context deadline exceeded`
  return begin
}
