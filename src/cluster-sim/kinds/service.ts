import type { Json } from "../object.ts"
import { age, formatLabels } from "./cells.ts"
import { validateService, validateServiceUpdate } from "./core-validation.ts"
import type { Definition } from "./define.ts"
import { editEach, fill, fillZero, set } from "./edit.ts"

const isExposed = (type: string) => type === "NodePort" || type === "LoadBalancer"

export const service: Definition = {
  apiVersion: "v1",
  kind: "Service",
  strategy: {
    allowsCreateOnUpdate: true,
    default(object) {
      let spec = fillZero(object.spec ?? {}, { sessionAffinity: "None", type: "ClusterIP" })
      if (spec.sessionAffinity === "None") spec = set(spec, "sessionAffinityConfig", undefined)
      else if (
        spec.sessionAffinity === "ClientIP" &&
        spec.sessionAffinityConfig?.clientIP?.timeoutSeconds === undefined
      )
        spec = set(spec, "sessionAffinityConfig", { clientIP: { timeoutSeconds: 10_800 } })
      spec = editEach(spec, "ports", port => fillZero(fillZero(port, { protocol: "TCP" }), { targetPort: port.port }))
      if (isExposed(spec.type)) spec = fillZero(spec, { externalTrafficPolicy: "Cluster" })
      if (spec.type !== "ExternalName") spec = fill(spec, { internalTrafficPolicy: "Cluster" })
      if (spec.type === "LoadBalancer") spec = fill(spec, { allocateLoadBalancerNodePorts: true })
      return set(object, "spec", spec)
    },
    prepareCreate(object, { random }) {
      const next = set(object, "status", { loadBalancer: {} })
      return object.spec.type === "ExternalName" ? next : set(next, "spec", allocated(object.spec, {}, random))
    },
    prepareUpdate(object, old, { random }) {
      const next = set(object, "status", old.status)
      return object.spec.type === "ExternalName" ? next : set(next, "spec", allocated(object.spec, old.spec, random))
    },
    validateCreate: validateService,
    validateUpdate: validateServiceUpdate,
    prepareStatusUpdate: (object, old) => set(object, "spec", old.spec),
    selectableFields: ({ spec }) => ({ "spec.clusterIP": spec.clusterIP ?? "", "spec.type": spec.type ?? "" }),
  },
  row(object, nowMs) {
    const { spec } = object
    const ports: Json[] = spec.ports ?? []
    return [
      object.metadata.name,
      spec.type,
      spec.clusterIPs?.[0] ?? "<none>",
      externalIp(object),
      ports
        .map(({ port, nodePort, protocol }) => (nodePort ? `${port}:${nodePort}/${protocol}` : `${port}/${protocol}`))
        .join(",") || "<none>",
      age(object, nowMs),
      formatLabels(spec.selector),
    ]
  },
}

/** Random addresses and node ports. They are not reserved: without traffic, a rare duplicate does no harm. */
function allocated(given: Json, old: Json, random: () => number): Json {
  const clusterIP = given.clusterIP || given.clusterIPs?.[0] || old.clusterIP || randomAddress(random)
  let spec = fill(set(set(given, "clusterIP", clusterIP), "clusterIPs", given.clusterIPs ?? [clusterIP]), {
    ipFamilies: ["IPv4"],
    ipFamilyPolicy: "SingleStack",
  })
  if (isExposed(spec.type) && spec.allocateLoadBalancerNodePorts !== false)
    spec = editEach(spec, "ports", port => {
      const before = old.ports?.find((each: Json) => each.port === port.port && each.protocol === port.protocol)
      return fillZero(port, { nodePort: before?.nodePort ?? 30_000 + Math.floor(random() * 2768) })
    })
  return spec
}

/** In 10.96.0.0/12, where most clusters keep them; the first 256 are left for addresses that users choose. */
function randomAddress(random: () => number): string {
  const number = 256 + Math.floor(random() * (2 ** 20 - 512))
  return `10.${96 + (number >> 16)}.${(number >> 8) & 255}.${number & 255}`
}

function externalIp({ spec, status }: Json): string {
  const chosen: string[] = spec.externalIPs ?? []
  if (spec.type === "ExternalName") return spec.externalName ?? ""
  if (spec.type !== "LoadBalancer") return chosen.join(",") || "<none>"
  const given = (status?.loadBalancer?.ingress ?? []).map(({ ip, hostname }: Json) => ip || hostname).filter(Boolean)
  return [...new Set(given)].sort().concat(chosen).join(",") || "<pending>"
}
