import { isIP } from "node:net"
import { parseQuantity } from "#lib/quantity.ts"
import { labelValueRule } from "../apiserver/names.ts"
import type { Json, Obj } from "../object.ts"
import type { Cause } from "../status-error.ts"
import { same } from "./edit.ts"
import { configKey, Findings } from "./findings.ts"
import { taintEffects } from "./pod-validation.ts"

const mostBytes = 1024 * 1024

export function validateConfigMap({ data = {}, binaryData = {} }: Json): Cause[] {
  const found = new Findings()
  let bytes = 0
  for (const [key, value] of Object.entries<string>(data)) {
    found.rule(`data[${key}]`, key, configKey)
    if (Object.hasOwn(binaryData, key)) found.invalid(`data[${key}]`, key, "duplicate of key present in binaryData")
    bytes += Buffer.byteLength(value)
  }
  for (const [key, value] of Object.entries<string>(binaryData)) {
    found.rule(`binaryData[${key}]`, key, configKey)
    bytes += Buffer.byteLength(value, "base64")
  }
  if (bytes > mostBytes) found.causes.push(tooLong(""))
  return found.causes
}

const tooLong = (field: string): Cause => ({
  reason: "FieldValueTooLong",
  message: `Too long: may not be more than ${mostBytes} bytes`,
  field,
})

/** An immutable object keeps its content; `fields` are the fields with the content. */
export const keepsImmutable =
  (fields: readonly string[], validate: (object: Json) => Cause[]) =>
  (object: Json, old: Obj): Cause[] => {
    const found = new Findings()
    if (old.kind === "Secret") found.immutable("type", object.type, old.type)
    if (old.immutable) {
      const why = "field is immutable when `immutable` is set"
      if (!object.immutable) found.forbidden("immutable", why)
      for (const field of fields) if (!same(object[field], old[field])) found.forbidden(field, why)
    }
    return [...found.causes, ...validate(object)]
  }

const neededKeys: Record<string, string[]> = {
  "kubernetes.io/dockercfg": [".dockercfg"],
  "kubernetes.io/dockerconfigjson": [".dockerconfigjson"],
  "kubernetes.io/ssh-auth": ["ssh-privatekey"],
  "kubernetes.io/tls": ["tls.crt", "tls.key"],
}

export function validateSecret({ metadata, type, data = {} }: Json): Cause[] {
  const found = new Findings()
  let bytes = 0
  for (const [key, value] of Object.entries<string>(data)) {
    found.rule(`data[${key}]`, key, configKey)
    bytes += Buffer.byteLength(value, "base64")
  }
  if (bytes > mostBytes) found.causes.push(tooLong("data"))
  const account = "kubernetes.io/service-account.name"
  if (type === "kubernetes.io/service-account-token" && !metadata.annotations?.[account])
    found.required(`metadata.annotations[${account}]`)
  for (const key of neededKeys[type] ?? []) {
    if (!Object.hasOwn(data, key)) found.required(`data[${key}]`)
    else if (key.startsWith(".docker") && !isJsonObject(data[key]))
      // A real server adds the message of Go's parser.
      found.invalid(`data[${key}]`, "<secret contents redacted>", "it is not a JSON object")
  }
  if (type === "kubernetes.io/basic-auth" && !("username" in data) && !("password" in data))
    for (const key of ["username", "password"]) found.required(`data[${key}]`)
  return found.causes
}

function isJsonObject(base64: string): boolean {
  try {
    const value = JSON.parse(Buffer.from(base64, "base64").toString())
    return typeof value === "object" && !Array.isArray(value)
  } catch {
    return false
  }
}

const accessModes = ["ReadOnlyMany", "ReadWriteMany", "ReadWriteOnce", "ReadWriteOncePod"]

export function validateClaim({ spec }: Json): Cause[] {
  const found = new Findings()
  const modes: string[] = spec.accessModes ?? []
  if (modes.length === 0) found.required("spec.accessModes", "at least 1 access mode is required")
  if (spec.selector) found.selector("spec.selector", spec.selector)
  for (const mode of modes) if (!accessModes.includes(mode)) found.unsupported("spec.accessModes", mode, accessModes)
  if (modes.includes("ReadWriteOncePod") && modes.some(mode => mode !== "ReadWriteOncePod"))
    found.forbidden("spec.accessModes", "may not use ReadWriteOncePod with other access modes")
  const size = spec.resources?.requests?.storage
  if (size === undefined) found.required("spec.resources[storage]")
  else if ((parseQuantity(size)?.nano ?? 1n) <= 0n)
    found.invalid("spec.resources[storage]", size, "must be greater than zero")
  if (spec.storageClassName) found.subdomain("spec.storageClassName", spec.storageClassName)
  if (spec.volumeMode !== "Block" && spec.volumeMode !== "Filesystem")
    found.unsupported("spec.volumeMode", spec.volumeMode, ["Block", "Filesystem"])
  return found.causes
}

export function validateClaimUpdate(object: Json, old: Obj): Cause[] {
  const found = new Findings()
  found.causes.push(...validateClaim(object))
  const isBound = old.status?.phase === "Bound"
  const { volumeName, ...spec } = object.spec
  const { volumeName: before, ...oldSpec } = old.spec
  const fixed = isBound ? { ...spec, resources: oldSpec.resources } : spec
  if (!same(fixed, oldSpec) || (before && before !== volumeName))
    // A real server adds a diff of its own structs here.
    found.forbidden(
      "spec",
      "spec is immutable after creation except resources.requests and volumeAttributesClassName for bound claims",
    )
  return found.causes
}

export function validateNode({ spec = {} }: Json): Cause[] {
  const found = new Findings()
  const seen = new Set<string>()
  for (const [index, { key = "", value = "", effect = "", timeAdded = null }] of (spec.taints ?? []).entries()) {
    const at = `metadata.taints[${index}]` // the path in the server's messages
    found.qualifiedName(`${at}.key`, key)
    const wrong = labelValueRule(value)
    if (wrong.length > 0) found.invalid(`${at}.value`, value, wrong.join(";"))
    found.oneOf(`${at}.effect`, effect, taintEffects)
    if (seen.has(`${effect} ${key}`))
      found.duplicate(
        at,
        { Key: key, Value: value, Effect: effect, TimeAdded: timeAdded },
        "taints must be unique by key and effect pair",
      )
    seen.add(`${effect} ${key}`)
  }
  return found.causes
}

const serviceTypes = ["ClusterIP", "ExternalName", "LoadBalancer", "NodePort"]

export function validateService({ spec }: Json): Cause[] {
  const found = new Findings()
  const ports: Json[] = spec.ports ?? []
  const isHeadless = spec.clusterIP === "None"
  if (ports.length === 0 && !isHeadless && spec.type !== "ExternalName") found.required("spec.ports")
  const [address] = spec.clusterIPs ?? []
  if (address && !isHeadless && spec.type !== "ExternalName" && isIP(address) === 0)
    found.invalid("spec.clusterIPs[0]", address, "must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)")
  if (isHeadless && (spec.type === "LoadBalancer" || spec.type === "NodePort"))
    found.invalid("spec.clusterIPs[0]", "None", `may not be set to 'None' for ${spec.type} services`)
  if (spec.type === "ExternalName") {
    for (const field of ["clusterIPs", "ipFamilies", "ipFamilyPolicy"])
      if (spec[field]?.length) found.forbidden(`spec.${field}`, "may not be set for ExternalName services")
    const name = (spec.externalName ?? "").replace(/\.$/, "")
    if (name) found.subdomain("spec.externalName", name)
    else found.required("spec.externalName")
  }
  const names = new Set<string>()
  for (const [index, { name, port, protocol, targetPort }] of ports.entries()) {
    const at = `spec.ports[${index}]`
    if (!name && ports.length > 1) found.required(`${at}.name`)
    else if (name) {
      found.label(`${at}.name`, name)
      if (names.has(name)) found.duplicate(`${at}.name`, name)
      names.add(name)
    }
    found.port(`${at}.port`, port ?? 0)
    found.oneOf(`${at}.protocol`, protocol, ["SCTP", "TCP", "UDP"])
    found.portOrName(`${at}.targetPort`, targetPort)
  }
  found.labels("spec.selector", spec.selector)
  found.oneOf("spec.sessionAffinity", spec.sessionAffinity, ["ClientIP", "None"])
  found.oneOf("spec.type", spec.type, serviceTypes)
  if (spec.type === "ClusterIP")
    for (const [index, { nodePort }] of ports.entries())
      if (nodePort) found.forbidden(`spec.ports[${index}].nodePort`, "may not be used when `type` is 'ClusterIP'")
  const taken = new Set<string>()
  for (const [index, { port, protocol }] of ports.entries()) {
    const key = `${protocol} ${port}`
    if (taken.has(key))
      found.duplicate(`spec.ports[${index}]`, {
        Name: "",
        Protocol: protocol,
        AppProtocol: null,
        Port: port,
        TargetPort: 0,
        NodePort: 0,
      })
    taken.add(key)
  }
  return found.causes
}

export function validateServiceUpdate(object: Json, old: Obj): Cause[] {
  const found = new Findings()
  const [now, before] = [object.spec.clusterIPs ?? [], old.spec.clusterIPs ?? []]
  const isKept = object.spec.type !== "ExternalName" && old.spec.type !== "ExternalName"
  if (isKept && before[0] && now[0] !== before[0]) found.invalid("spec.clusterIPs[0]", now, "may not change once set")
  return [...found.causes, ...validateService(object)]
}

/** Two groups serve events; the newer one requires more fields. */
export function validateEvent(event: Json, isNew: boolean): Cause[] {
  const found = new Findings()
  const { metadata, involvedObject = {}, eventTime, series } = event
  const disagrees = () =>
    found.invalid("involvedObject.namespace", involvedObject.namespace ?? "", "does not match event.namespace")
  if (!eventTime) {
    if (!involvedObject.namespace ? metadata.namespace !== "default" : metadata.namespace !== involvedObject.namespace)
      disagrees()
  } else {
    if (!involvedObject.namespace && metadata.namespace !== "default" && metadata.namespace !== "kube-system")
      disagrees()
    const controller = isNew ? "reportingController" : "reportingComponent"
    if (!event.reportingComponent) found.required(controller)
    found.qualifiedName(controller, event.reportingComponent ?? "")
    for (const field of ["reportingInstance", "action", "reason"]) {
      if (!event[field]) found.required(field)
      else if (event[field].length > 128) found.invalid(field, "", "can have at most 128 characters")
    }
    if ((event.message ?? "").length > 1024) found.invalid("message", "", "can have at most 1024 characters")
  }
  if (!isNew) return found.causes
  if (series && series.count < 2) found.invalid("series.count", "", "should be at least 2")
  if (series && !series.lastObservedTime) found.required("series.lastObservedTime")
  if (!eventTime) found.required("eventTime")
  if (event.type !== "Normal" && event.type !== "Warning")
    found.invalid("type", "", `has invalid value: ${event.type ?? ""}`)
  for (const field of ["firstTimestamp", "lastTimestamp", "count"])
    if (event[field]) found.invalid(field, "", "needs to be unset")
  if (event.source?.component || event.source?.host) found.invalid("source", "", "needs to be unset")
  return found.causes
}
