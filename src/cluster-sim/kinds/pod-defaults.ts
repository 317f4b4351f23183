import { formatQuantity, inMilli, isPlainQuantity, parseQuantity } from "#lib/quantity.ts"
import type { Json } from "../object.ts"
import { edit, editEach, fill, fillZero, set } from "./edit.ts"

/** The server's defaults for the spec of a pod or of a pod template. */
function podSpecDefaults(given: Json): Json {
  let spec = fillZero(given ?? {}, {
    dnsPolicy: "ClusterFirst",
    restartPolicy: "Always",
    schedulerName: "default-scheduler",
  })
  spec = fill(spec, { securityContext: {}, terminationGracePeriodSeconds: 30 })
  // Both fields for the account are written; serviceAccountName wins over the deprecated serviceAccount.
  if (spec.serviceAccountName) spec = set(spec, "serviceAccount", spec.serviceAccountName)
  else if (spec.serviceAccount) spec = set(spec, "serviceAccountName", spec.serviceAccount)
  spec = editEach(spec, "volumes", volumeDefaults)
  spec = editEach(spec, "initContainers", containerDefaults)
  spec = editEach(spec, "containers", containerDefaults)
  spec = editEach(spec, "ephemeralContainers", containerDefaults)
  spec = edit(spec, "overhead", resourceList)
  return edit(spec, "resources", requirements)
}

export const templateDefaults = (template: Json) => set(template ?? {}, "spec", podSpecDefaults(template?.spec))

/** The defaults for pods that do not apply to templates. */
export function podDefaults(pod: Json): Json {
  let spec = podSpecDefaults(pod.spec)
  spec = editEach(spec, "containers", withRequests)
  spec = editEach(spec, "initContainers", withRequests)
  spec = withRequests(spec)
  spec = fill(spec, { enableServiceLinks: true })
  if (spec.terminationGracePeriodSeconds < 0) spec = set(spec, "terminationGracePeriodSeconds", 1)
  if (spec.hostNetwork)
    for (const field of ["containers", "initContainers"])
      spec = editEach(spec, field, container => editEach(container, "ports", hostPort))
  return set(pod, "spec", spec)
}

function containerDefaults(given: Json): Json {
  let container = fillZero(given, {
    imagePullPolicy: isLatest(given.image ?? "") ? "Always" : "IfNotPresent",
    terminationMessagePath: "/dev/termination-log",
    terminationMessagePolicy: "File",
  })
  container = fill(container, { resources: {} })
  container = editEach(container, "ports", port => fillZero(port, { protocol: "TCP" }))
  container = editEach(container, "env", variable =>
    edit(variable, "valueFrom", source => {
      const next = edit(source, "fieldRef", reference => fillZero(reference, { apiVersion: "v1" }))
      return edit(next, "fileKeyRef", reference => fill(reference, { optional: false }))
    }),
  )
  container = edit(container, "resources", requirements)
  for (const probe of ["livenessProbe", "readinessProbe", "startupProbe"])
    container = edit(container, probe, probeDefaults)
  return edit(container, "lifecycle", lifecycle => {
    const next = edit(lifecycle, "postStart", handlerDefaults)
    return edit(next, "preStop", handlerDefaults)
  })
}

function probeDefaults(probe: Json): Json {
  const next = fillZero(handlerDefaults(probe), {
    timeoutSeconds: 1,
    periodSeconds: 10,
    successThreshold: 1,
    failureThreshold: 3,
  })
  return edit(next, "grpc", grpc => fill(grpc, { service: "" }))
}

const handlerDefaults = (handler: Json) =>
  edit(handler, "httpGet", request => fillZero(request, { path: "/", scheme: "HTTP" }))

const requirements = (resources: Json) => edit(edit(resources, "limits", resourceList), "requests", resourceList)

/** An amount as it is stored for a pod. An invalid quantity is unchanged, so that validation reports it. */
function storedQuantity(amount: string | number): string | number {
  if (isPlainQuantity(amount)) return amount
  const quantity = parseQuantity(amount)
  return quantity ? formatQuantity(inMilli(quantity)) : amount
}

/** Every amount in canonical form. */
export function resourceList(list: Json): Json {
  let next = list
  for (const name in list) next = set(next, name, storedQuantity(list[name]))
  return next
}

const withRequests = (container: Json) =>
  edit(container, "resources", resources => {
    const { limits, requests } = resources
    if (!limits || Object.keys(limits).every(name => requests?.[name] !== undefined)) return resources
    return set(resources, "requests", { ...limits, ...requests })
  })

const hostPort = (port: Json) => fillZero(port, { hostPort: port.containerPort })

const modes = ["secret", "configMap", "downwardAPI", "projected"]

function volumeDefaults(given: Json): Json {
  let volume = Object.keys(given).some(field => field !== "name") ? given : { ...given, emptyDir: {} }
  for (const field of modes) volume = edit(volume, field, source => fill(source, { defaultMode: 420 }))
  volume = edit(volume, "hostPath", source => fill(source, { type: "" }))
  volume = edit(volume, "image", source =>
    fillZero(source, { pullPolicy: isLatest(source.reference ?? "") ? "Always" : "IfNotPresent" }),
  )
  volume = edit(volume, "downwardAPI", downwardItems)
  volume = edit(volume, "projected", source =>
    editEach(source, "sources", each => {
      const next = edit(each, "downwardAPI", downwardItems)
      return edit(next, "serviceAccountToken", token => fill(token, { expirationSeconds: 3600 }))
    }),
  )
  return edit(volume, "ephemeral", source =>
    edit(source, "volumeClaimTemplate", template => edit(template, "spec", claimSpecDefaults)),
  )
}

const downwardItems = (source: Json) =>
  editEach(source, "items", item => edit(item, "fieldRef", reference => fillZero(reference, { apiVersion: "v1" })))

export function claimSpecDefaults(spec: Json): Json {
  return edit(fill(spec, { volumeMode: "Filesystem" }), "resources", requirements)
}

/** Whether the tag is `latest`, explicitly or by default. A digest never is. */
function isLatest(image: string): boolean {
  if (image.includes("@")) return false
  const tag = image.slice(image.lastIndexOf("/") + 1).split(":")[1]
  return tag === undefined || tag === "latest"
}
