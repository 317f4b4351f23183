import { parseQuantity } from "#lib/quantity.ts"
import { labelValueRule } from "../apiserver/names.ts"
import type { Json, Obj } from "../object.ts"
import type { Cause } from "../status-error.ts"
import { same } from "./edit.ts"
import { configKey, Findings, portName } from "./findings.ts"

/** The server's refusals of a new pod. */
export function validatePod({ spec }: Json): Cause[] {
  const found = new Findings()
  podSpec(found, spec, "spec")
  for (const list of ["containers", "initContainers"])
    for (const [index, { image = "" }] of (spec[list] ?? []).entries())
      if (image.trim().length !== image.length)
        found.invalid(`spec.${list}[${index}].image`, image, "must not have leading or trailing whitespace")
  return found.causes
}

/** The server's refusals of a pod template. */
export function podTemplate(found: Findings, template: Json, path: string) {
  found.labels(`${path}.labels`, template.metadata?.labels)
  for (const key of Object.keys(template.metadata?.annotations ?? {}))
    found.qualifiedName(`${path}.annotations`, key.toLowerCase())
  podSpec(found, template.spec, `${path}.spec`)
  if (template.spec.ephemeralContainers?.length)
    found.forbidden(`${path}.spec.ephemeralContainers`, "ephemeral containers not allowed in pod template")
}

const restartPolicies = ["Always", "OnFailure", "Never"]
const dnsPolicies = ["ClusterFirstWithHostNet", "ClusterFirst", "Default", "None"]

function podSpec(found: Findings, spec: Json, path: string) {
  const volumes = validateVolumes(found, spec.volumes ?? [], `${path}.volumes`)
  validateContainers(found, spec, volumes, path)
  validateInitContainers(found, spec, volumes, path)
  found.oneOf(`${path}.restartPolicy`, spec.restartPolicy, restartPolicies)
  found.oneOf(`${path}.dnsPolicy`, spec.dnsPolicy, dnsPolicies)
  found.labels(`${path}.nodeSelector`, spec.nodeSelector)
  for (const [index, { conditionType = "" }] of (spec.readinessGates ?? []).entries())
    found.qualifiedName(`${path}.readinessGates[${index}].conditionType`, conditionType)
  validateSpread(found, spec.topologySpreadConstraints ?? [], `${path}.topologySpreadConstraints`)
  if (spec.serviceAccountName) found.subdomain(`${path}.serviceAccountName`, spec.serviceAccountName)
  if (spec.nodeName) found.subdomain(`${path}.nodeName`, spec.nodeName)
  if (spec.activeDeadlineSeconds !== undefined)
    found.between(`${path}.activeDeadlineSeconds`, spec.activeDeadlineSeconds, 1, 2 ** 31 - 1)
  if (spec.hostname) found.label(`${path}.hostname`, spec.hostname)
  if (spec.subdomain) found.label(`${path}.subdomain`, spec.subdomain)
  validateTolerations(found, spec.tolerations ?? [], `${path}.tolerations`)
  if (spec.priorityClassName) found.subdomain(`${path}.priorityClassName`, spec.priorityClassName)
}

function validateContainers(found: Findings, spec: Json, volumes: Set<string>, path: string) {
  const containers: Json[] = spec.containers ?? []
  if (containers.length === 0) return found.required(`${path}.containers`)
  const names = new Set<string>()
  const hostPorts = new Set<string>()
  for (const [index, container] of containers.entries()) {
    const at = `${path}.containers[${index}]`
    validateContainer(found, container, volumes, at)
    if (names.has(container.name ?? "")) found.duplicate(`${at}.name`, container.name ?? "")
    names.add(container.name ?? "")
    validateHooksAndProbes(found, container, at)
    if (container.restartPolicy) found.oneOf(`${at}.restartPolicy`, container.restartPolicy, restartPolicies.toSorted())
  }
  for (const [index, container] of containers.entries())
    uniqueHostPorts(found, container, hostPorts, `${path}.containers[${index}]`)
}

function validateInitContainers(found: Findings, spec: Json, volumes: Set<string>, path: string) {
  const names = new Set<string>((spec.containers ?? []).map(({ name }: Json) => name))
  for (const [index, container] of (spec.initContainers ?? []).entries()) {
    const at = `${path}.initContainers[${index}]`
    validateContainer(found, container, volumes, at)
    if (container.restartPolicy !== undefined)
      found.oneOf(`${at}.restartPolicy`, container.restartPolicy, ["Always", "Never", "OnFailure"])
    if (names.has(container.name)) found.duplicate(`${at}.name`, container.name)
    names.add(container.name)
    uniqueHostPorts(found, container, new Set(), at)
    if (container.restartPolicy === "Always") validateHooksAndProbes(found, container, at)
    else
      for (const field of ["lifecycle", "livenessProbe", "readinessProbe", "startupProbe"])
        if (container[field])
          found.forbidden(`${at}.${field}`, "may not be set for init containers without restartPolicy=Always")
  }
}

const pullPolicies = ["Always", "IfNotPresent", "Never"]
const messagePolicies = ["File", "FallbackToLogsOnError"]
const protocols = ["SCTP", "TCP", "UDP"]

function validateContainer(found: Findings, container: Json, volumes: Set<string>, at: string) {
  if (!container.name) found.required(`${at}.name`)
  else found.label(`${at}.name`, container.name)
  if (!container.image) found.required(`${at}.image`)
  found.oneOf(`${at}.terminationMessagePolicy`, container.terminationMessagePolicy, messagePolicies)
  validatePorts(found, container.ports ?? [], `${at}.ports`)
  validateVariables(found, container, at)
  validateMounts(found, container, volumes, at)
  found.oneOf(`${at}.imagePullPolicy`, container.imagePullPolicy, pullPolicies)
  validateResources(found, container.resources ?? {}, `${at}.resources`)
  validateSecurity(found, container.securityContext, `${at}.securityContext`)
}

function validatePorts(found: Findings, ports: Json[], path: string) {
  const names = new Set<string>()
  for (const [index, { name, containerPort, hostPort, protocol }] of ports.entries()) {
    const at = `${path}[${index}]`
    if (name) {
      const wrong = portName(name)
      for (const why of wrong) found.invalid(`${at}.name`, name, why)
      if (wrong.length === 0 && names.has(name)) found.duplicate(`${at}.name`, name)
      if (wrong.length === 0) names.add(name)
    }
    if (!containerPort) found.required(`${at}.containerPort`)
    else found.port(`${at}.containerPort`, containerPort)
    if (hostPort) found.port(`${at}.hostPort`, hostPort)
    found.oneOf(`${at}.protocol`, protocol, protocols)
  }
}

function uniqueHostPorts(found: Findings, container: Json, taken: Set<string>, at: string) {
  for (const [index, { hostPort, hostIP = "", protocol }] of (container.ports ?? []).entries()) {
    if (!hostPort) continue
    const text = `${protocol}/${hostIP}/${hostPort}`
    if (taken.has(text)) found.duplicate(`${at}.ports[${index}].hostPort`, text)
    taken.add(text)
  }
}

const variableName = (name: string) =>
  /^[ -<>-~]+$/.test(name)
    ? []
    : ["a valid environment variable name must consist only of printable ASCII characters other than '='"]

const fieldPaths = [
  "metadata.name",
  "metadata.namespace",
  "metadata.uid",
  "spec.nodeName",
  "spec.serviceAccountName",
  "status.hostIP",
  "status.hostIPs",
  "status.podIP",
  "status.podIPs",
]
const sources = ["fieldRef", "resourceFieldRef", "configMapKeyRef", "secretKeyRef", "fileKeyRef"]

function validateVariables(found: Findings, { env = [], envFrom = [] }: Json, container: string) {
  for (const [index, { name, value, valueFrom }] of env.entries()) {
    const at = `${container}.env[${index}]`
    if (!name) found.required(`${at}.name`)
    else found.rule(`${at}.name`, name, variableName)
    if (!valueFrom) continue
    const from = `${at}.valueFrom`
    if (valueFrom.fieldRef) validateFieldRef(found, valueFrom.fieldRef, `${from}.fieldRef`)
    for (const source of ["configMapKeyRef", "secretKeyRef"]) {
      if (!valueFrom[source]) continue
      const { key } = valueFrom[source]
      if (!key) found.required(`${from}.${source}.key`)
      else found.rule(`${from}.${source}.key`, key, configKey)
    }
    const count = sources.filter(source => valueFrom[source]).length
    if (count === 0)
      found.invalid(
        from,
        "",
        "must specify one of: `fieldRef`, `resourceFieldRef`, `configMapKeyRef`, `secretKeyRef` or `fileKeyRef`",
      )
    else if (value) found.invalid(from, "", "may not be specified when `value` is not empty")
    else if (count > 1) found.invalid(from, "", "may not have more than one field specified at a time")
  }
  for (const [index, { prefix, configMapRef, secretRef }] of envFrom.entries()) {
    const at = `${container}.envFrom[${index}]`
    if (prefix) found.rule(`${at}.prefix`, prefix, variableName)
    if (configMapRef && !configMapRef.name) found.required(`${at}.configMapRef.name`)
    if (secretRef && !secretRef.name) found.required(`${at}.secretRef.name`)
    if (!configMapRef && !secretRef)
      found.invalid(`${container}.envFrom`, "", "must specify one of: `configMapRef` or `secretRef`")
    else if (configMapRef && secretRef)
      found.invalid(`${container}.envFrom`, "", "may not have more than one field specified at a time")
  }
}

function validateFieldRef(found: Findings, { fieldPath }: Json, at: string) {
  if (!fieldPath) return found.required(`${at}.fieldPath`)
  if (/^metadata\.(labels|annotations)\['.*'\]$/.test(fieldPath)) return
  if (!fieldPaths.includes(fieldPath))
    found.invalid(`${at}.fieldPath`, fieldPath, `error converting fieldPath: field label not supported: ${fieldPath}`)
}

function validateMounts(found: Findings, { volumeMounts = [] }: Json, volumes: Set<string>, container: string) {
  const paths = new Set<string>()
  for (const [index, { name, mountPath, subPath }] of volumeMounts.entries()) {
    const at = `${container}.volumeMounts[${index}]`
    if (!name) found.required(`${at}.name`)
    if (!volumes.has(name)) found.notFound(`${at}.name`, name ?? "")
    if (!mountPath) found.required(`${at}.mountPath`)
    if (paths.has(mountPath ?? "")) found.invalid(`${at}.mountPath`, mountPath ?? "", "must be unique")
    paths.add(mountPath ?? "")
    if (subPath) descendingPath(found, subPath, `${container}.volumeMounts.subPath`)
  }
}

function descendingPath(found: Findings, path: string, field: string) {
  if (path.startsWith("/")) found.invalid(field, path, "must be a relative path")
  if (path.split("/").includes("..")) found.invalid(field, path, "must not contain '..'")
}

/** Returns the names of the valid volumes, which may be mounted. */
function validateVolumes(found: Findings, volumes: Json[], path: string): Set<string> {
  const names = new Set<string>()
  for (const [index, volume] of volumes.entries()) {
    const at = `${path}[${index}]`
    const before = found.causes.length
    validateVolumeSource(found, volume, at)
    if (!volume.name) found.required(`${at}.name`)
    else found.label(`${at}.name`, volume.name)
    if (names.has(volume.name)) found.duplicate(`${at}.name`, volume.name)
    if (found.causes.length === before) names.add(volume.name)
  }
  return names
}

function validateVolumeSource(found: Findings, { name: _, ...given }: Json, at: string) {
  const kinds = Object.keys(given).filter(kind => given[kind])
  // If there are several, the first in the server's order counts.
  const order = ["emptyDir", "hostPath", "secret", "persistentVolumeClaim", "configMap", "downwardAPI", "projected"]
  const rank = (each: string) => (order.includes(each) ? order.indexOf(each) : order.length)
  kinds.sort((a, b) => rank(a) - rank(b))
  const [kind, ...others] = kinds
  const items = (source: Json, field: string) => {
    for (const [index, { key, path = "" }] of (source.items ?? []).entries()) {
      if (!key) found.required(`${at}.${field}.items[${index}].key`)
      if (!path) found.required(`${at}.${field}.items[${index}].path`)
      descendingPath(found, path, `${at}.${field}.items[${index}].path`)
    }
  }
  if (kind === "hostPath" && !given.hostPath.path) found.required(`${at}.hostPath.path`)
  if (kind === "secret") {
    if (!given.secret.secretName) found.required(`${at}.secret.secretName`)
    items(given.secret, "secret")
  }
  if (kind === "configMap") {
    if (!given.configMap.name) found.required(`${at}.configMap.name`)
    items(given.configMap, "configMap")
  }
  if (kind === "persistentVolumeClaim" && !given.persistentVolumeClaim.claimName)
    found.required(`${at}.persistentVolumeClaim.claimName`)
  for (const other of others) found.forbidden(`${at}.${other}`, "may not specify more than 1 volume type")
}

const standardResources = new Set(["cpu", "memory", "ephemeral-storage"])
const isStandard = (name: string) => standardResources.has(name) || name.startsWith("hugepages-")
/** Devices and huge pages cannot be overcommitted: the request equals the limit, in whole numbers. */
const isOvercommitted = (name: string) => !name.includes("/") && !name.startsWith("hugepages-")

function validateResources(found: Findings, { limits = {}, requests = {} }: Json, path: string) {
  for (const [list, amounts] of [
    ["limits", limits],
    ["requests", requests],
  ] as const)
    for (const name of Object.keys(amounts).sort()) {
      const at = `${path}.${list}[${name}]`
      if (!name.includes("/") && !isStandard(name))
        found.invalid(at, name, "must be a standard resource for containers")
      const amount = parseQuantity(amounts[name])
      if (!amount) continue
      if (amount.nano < 0n) found.invalid(at, amounts[name], "must be greater than or equal to 0")
      if (name.includes("/") && amount.nano % 10n ** 9n !== 0n) found.invalid(at, amounts[name], "must be an integer")
      if (list === "limits") continue
      const limit = limits[name] === undefined ? undefined : parseQuantity(limits[name])
      if (!limit) {
        if (!isOvercommitted(name))
          found.required(`${path}.limits`, "Limit must be set for non overcommitable resources")
      } else if (!isOvercommitted(name) && limit.nano !== amount.nano)
        found.invalid(`${path}.requests`, amounts[name], `must be equal to ${name} limit of ${limits[name]}`)
      else if (amount.nano > limit.nano)
        found.invalid(
          `${path}.requests`,
          amounts[name],
          `must be less than or equal to ${name} limit of ${limits[name]}`,
        )
    }
}

function validateSecurity(found: Findings, context: Json, path: string) {
  if (!context) return
  for (const field of ["runAsUser", "runAsGroup"])
    if (context[field] !== undefined) found.between(`${path}.${field}`, context[field], 0, 2 ** 31 - 1)
  if (context.privileged && context.allowPrivilegeEscalation === false)
    found.invalid(
      path,
      goSecurityContext(context),
      "cannot set `allowPrivilegeEscalation` to false and `privileged` to true",
    )
}

const goSecurityContext = (context: Json) =>
  Object.fromEntries(
    [
      "capabilities",
      "privileged",
      "seLinuxOptions",
      "windowsOptions",
      "runAsUser",
      "runAsGroup",
      "runAsNonRoot",
      "readOnlyRootFilesystem",
      "allowPrivilegeEscalation",
      "procMount",
      "seccompProfile",
      "appArmorProfile",
    ].map(field => [
      field === "seLinuxOptions" ? "SELinuxOptions" : field[0]!.toUpperCase() + field.slice(1),
      context[field] ?? null,
    ]),
  )

function validateHooksAndProbes(found: Findings, container: Json, at: string) {
  for (const hook of ["postStart", "preStop"])
    if (container.lifecycle?.[hook]) validateHandler(found, container.lifecycle[hook], `${at}.lifecycle.${hook}`)
  for (const field of ["livenessProbe", "readinessProbe", "startupProbe"]) {
    const probe = container[field]
    if (!probe) continue
    const path = `${at}.${field}`
    validateHandler(found, probe, path)
    for (const number of [
      "initialDelaySeconds",
      "timeoutSeconds",
      "periodSeconds",
      "successThreshold",
      "failureThreshold",
    ])
      found.notNegative(`${path}.${number}`, probe[number])
    const grace = probe.terminationGracePeriodSeconds
    if (grace !== undefined && grace <= 0)
      found.invalid(`${path}.terminationGracePeriodSeconds`, grace, "must be greater than 0")
    if (field === "readinessProbe") {
      if (grace !== undefined)
        found.invalid(`${path}.terminationGracePeriodSeconds`, grace, "must not be set for readinessProbes")
    } else if (probe.successThreshold !== 1)
      found.invalid(`${path}.successThreshold`, probe.successThreshold, "must be 1")
  }
}

function validateHandler(found: Findings, handler: Json, path: string) {
  const [kind, ...others] = ["exec", "httpGet", "tcpSocket", "grpc", "sleep"].filter(each => handler[each])
  if (!kind) return found.required(path, "must specify a handler type")
  const at = `${path}.${kind}`
  const { command, port, path: target, scheme } = handler[kind]
  if (kind === "exec" && !command?.length) found.required(`${at}.command`)
  if (kind === "httpGet") {
    if (!target) found.required(`${at}.path`)
    found.portOrName(`${at}.port`, port)
    if (scheme !== "HTTP" && scheme !== "HTTPS") found.unsupported(`${at}.scheme`, scheme, ["HTTP", "HTTPS"])
  }
  if (kind === "tcpSocket") found.portOrName(`${at}.port`, port)
  if (kind === "grpc") found.port(`${at}.port`, port ?? 0)
  for (const other of others) found.forbidden(`${path}.${other}`, "may not specify more than 1 handler type")
}

function validateSpread(found: Findings, constraints: Json[], path: string) {
  for (const [index, constraint] of constraints.entries()) {
    const at = `${path}[${index}]`
    const { maxSkew = 0, topologyKey, whenUnsatisfiable, labelSelector } = constraint
    if (maxSkew <= 0) found.invalid(`${at}.maxSkew`, maxSkew, "must be greater than zero")
    if (!topologyKey) found.required(`${at}.topologyKey`, "can not be empty")
    else found.qualifiedName(`${at}.topologyKey`, topologyKey)
    if (whenUnsatisfiable !== "DoNotSchedule" && whenUnsatisfiable !== "ScheduleAnyway")
      found.unsupported(`${at}.whenUnsatisfiable`, whenUnsatisfiable ?? "", ["DoNotSchedule", "ScheduleAnyway"])
    if (labelSelector) found.selector(`${at}.labelSelector`, labelSelector)
  }
}

export const taintEffects = ["NoSchedule", "PreferNoSchedule", "NoExecute"]

function validateTolerations(found: Findings, tolerations: Json[], path: string) {
  for (const [index, { key, operator = "", value = "", effect = "", tolerationSeconds }] of tolerations.entries()) {
    const at = `${path}[${index}]`
    if (key) found.qualifiedName(`${at}.key`, key)
    else if (operator !== "Exists")
      found.invalid(
        `${at}.operator`,
        operator,
        'operator must be Exists when `key` is empty, which means "match all values and all keys"',
      )
    if (tolerationSeconds !== undefined && effect !== "NoExecute")
      found.invalid(`${at}.effect`, effect, "effect must be 'NoExecute' when `tolerationSeconds` is set")
    if (operator === "" || operator === "Equal") {
      const wrong = labelValueRule(value)
      if (wrong.length > 0) found.invalid(`${at}.operator`, value, wrong.join(";"))
    } else if (operator === "Exists") {
      if (value) found.invalid(`${at}.operator`, value, "value must be empty when `operator` is 'Exists'")
    } else if (operator === "Lt" || operator === "Gt")
      found.unsupported(`${at}.operator`, operator, ["Equal", "Exists", "Lt", "Gt"])
    else found.unsupported(`${at}.operator`, operator, ["Equal", "Exists"])
    if (effect) found.oneOf(`${at}.effect`, effect, taintEffects)
  }
}

const changeable =
  "pod updates may not change fields other than `spec.containers[*].image`,`spec.initContainers[*].image`,`spec.activeDeadlineSeconds`,`spec.tolerations` (only additions to existing tolerations),`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was previously negative)"

/** The server's refusals of a pod update: nearly every change of the spec. */
export function validatePodUpdate(object: Json, old: Obj): Cause[] {
  const found = new Findings()
  found.causes.push(...validatePod(object))
  const { spec } = object
  for (const list of ["containers", "initContainers"]) {
    const [now, before] = [spec[list] ?? [], old.spec[list] ?? []]
    if (now.length !== before.length) {
      found.forbidden(`spec.${list}`, "pod updates may not add or remove containers")
      return found.causes
    }
    for (const [index, { image = "" }] of now.entries()) {
      if (!image) found.required(`spec.${list}[${index}].image`)
      if (image.trim().length !== image.length)
        found.invalid(`spec.${list}[${index}].image`, image, "must not have leading or trailing whitespace")
    }
  }
  const [deadline, before] = [spec.activeDeadlineSeconds, old.spec.activeDeadlineSeconds]
  if (deadline !== undefined && before !== undefined && before < deadline) {
    found.invalid("spec.activeDeadlineSeconds", deadline, "must be less than or equal to previous value")
    return found.causes
  }
  if (deadline === undefined && before !== undefined)
    found.invalid("spec.activeDeadlineSeconds", null, "must not update from a positive integer to nil value")
  validateOnlyAdded(found, spec.tolerations ?? [], old.spec.tolerations ?? [])
  for (const { name } of spec.schedulingGates ?? [])
    if (!old.spec.schedulingGates?.some((gate: Json) => gate.name === name))
      found.forbidden("spec.schedulingGates", `only deletion is allowed, but found new scheduling gate '${name}'`)

  const fixed = withoutChangeable(spec, old.spec)
  if (!same(fixed, old.spec)) {
    const paths = [...differences(fixed, old.spec, "spec")]
    // A real server adds a diff of its own structs here.
    found.forbidden("spec", `${changeable}\n${paths.map(path => `${path}\n`).join("")}`)
  }
  return found.causes
}

function withoutChangeable(spec: Json, old: Json): Json {
  const withImages = (list: string) =>
    (spec[list] ?? []).map((container: Json, index: number) => ({ ...container, image: old[list][index].image }))
  const next = {
    ...spec,
    containers: withImages("containers"),
    ...(spec.initContainers && { initContainers: withImages("initContainers") }),
    activeDeadlineSeconds: old.activeDeadlineSeconds,
    tolerations: old.tolerations,
    schedulingGates: old.schedulingGates,
  }
  if (old.terminationGracePeriodSeconds < 0 && spec.terminationGracePeriodSeconds === 1)
    next.terminationGracePeriodSeconds = old.terminationGracePeriodSeconds
  // While a pod has a scheduling gate, its node selection may still be narrowed.
  if (
    old.schedulingGates?.length &&
    Object.entries(old.nodeSelector ?? {}).every(([key, value]) => spec.nodeSelector?.[key] === value)
  )
    next.nodeSelector = old.nodeSelector
  return next
}

function* differences(a: Json, b: Json, path: string): Generator<string> {
  if (same(a, b)) return
  if (typeof a !== "object" || typeof b !== "object" || !a || !b || Array.isArray(a) !== Array.isArray(b)) {
    yield `${path}: ${JSON.stringify(b) ?? "not set"} → ${JSON.stringify(a) ?? "not set"}`
    return
  }
  for (const key of new Set([...Object.keys(a), ...Object.keys(b)]))
    yield* differences(a[key], b[key], Array.isArray(a) ? `${path}[${key}]` : `${path}.${key}`)
}

function validateOnlyAdded(found: Findings, tolerations: Json[], old: Json[]) {
  const isKept = (each: Json) =>
    tolerations.some(toleration => same({ ...each, tolerationSeconds: toleration.tolerationSeconds }, toleration))
  if (!old.every(isKept))
    return found.forbidden("spec.tolerations", "existing toleration can not be modified except its tolerationSeconds")
  validateTolerations(found, tolerations, "spec.tolerations")
}
