import { ContainerRecreateRequest } from "#api/v1alpha1/containerrecreaterequest/index.ts"
import { ImageListPullJob } from "#api/v1alpha1/imagelistpulljob/index.ts"
import { ImagePullJob } from "#api/v1alpha1/imagepulljob/index.ts"
import { readinessGate } from "#api/v1alpha1/readiness-gate.ts"
import { type Conversion, isObject, type Json, judged, type Remark } from "./judged.ts"
import { nodeImage } from "./openkruise-nodeimage.ts"
import { grantRemark, isWritten } from "./openkruise-remarks.ts"

const converters: Readonly<Record<string, (value: Json) => Conversion>> = {
  ContainerRecreateRequest: containerRecreateRequest,
  ImagePullJob: value => pullJob(ImagePullJob, value),
  ImageListPullJob: value => pullJob(ImageListPullJob, value),
  NodeImage: nodeImage,
}

export const openKruiseKinds = Object.keys(converters)

/** The two versions have the same fields in their specs, so that one converter serves both. */
const versions = ["apps.kruise.io/v1alpha1", "apps.kruise.io/v1beta1"]

const converterOf = ({ apiVersion, kind }: Json) =>
  versions.includes(String(apiVersion)) && Object.hasOwn(converters, String(kind))
    ? converters[String(kind)]
    : undefined

/** Converts a manifest of one of OpenKruise's kinds; undefined for every other manifest. */
export const openKruise = (value: Json): Conversion | undefined => converterOf(value)?.(value)

/** Fields that OpenKruise's webhook copies from the pod. */
const copiedFromPod = {
  preStop: "dropped: the agent runs the preStop that the container has",
  ports: "dropped: the agent reads them from the container",
  statusContext: "dropped: status.containerRecreateStates records the container",
}

function containerRecreateRequest(value: Json): Conversion {
  const phase = isObject(value.status) ? value.status.phase : undefined
  if (phase === "Completed")
    return unneeded(
      "status.phase",
      "not converted: the request is complete, and a copy would restart the containers again; to restart them again, remove the status and convert it",
    )
  const remarks: Remark[] = []
  if (isWritten(phase))
    remarks.push({
      path: "status.phase",
      message: `OpenKruise has begun with it (${phase}): delete its request before this one is applied, or the containers restart twice`,
    })
  const spec = isObject(value.spec) ? { ...value.spec } : value.spec
  if (isObject(spec) && Array.isArray(spec.containers))
    spec.containers = spec.containers.map((each, index) =>
      without(copiedFromPod, each, `spec.containers[${index}]`, remarks),
    )
  if (isObject(spec) && isObject(spec.strategy) && isWritten(spec.strategy.unreadyGracePeriodSeconds))
    remarks.push({
      path: "spec.strategy.unreadyGracePeriodSeconds",
      message: `the pod must list the readiness gate ${readinessGate}; KruisePodReady has no effect here`,
    })
  return judged(ContainerRecreateRequest, withoutOwnKeys(value, remarks), spec, remarks)
}

function pullJob(kind: typeof ImagePullJob | typeof ImageListPullJob, value: Json): Conversion {
  const list = listThatMade(value)
  if (list !== undefined)
    return unneeded(
      "metadata.ownerReferences",
      `not converted: ImageListPullJob ${list} made it; convert that list, which makes jobs of its own`,
    )
  const remarks: Remark[] = []
  if (isObject(value.status) && isWritten(value.status.completionTime))
    remarks.push({
      path: "status.completionTime",
      message: "the job has ended: once applied here, it runs again on every selected node",
    })
  const spec = isObject(value.spec) ? { ...value.spec } : value.spec
  if (isObject(spec)) {
    if (isObject(spec.selector)) spec.selector = { ...spec.selector, ...each("names", spec.selector, "spec.selector") }
    Object.assign(spec, each("pullSecrets", spec, "spec"), each("images", spec, "spec"))
    remarks.push(...grantRemark(spec.pullSecrets, namespaceOf(value), "spec.pullSecrets"))
  }
  return judged(kind, withoutOwnKeys(value, remarks), spec, remarks)

  /** A list in which each item stands once: OpenKruise allows repetitions. */
  function each(name: string, holder: Json, at: string): Json {
    const written = holder[name]
    if (!Array.isArray(written)) return {}
    return {
      [name]: written.filter((item, index) => {
        const isFirst = written.indexOf(item) === index
        if (!isFirst) remarks.push({ path: `${at}.${name}[${index}]`, message: `dropped: ${item} is repeated` })
        return isFirst
      }),
    }
  }
}

const unneeded = (path: string, message: string): Conversion => ({
  ok: true,
  objects: [],
  remarks: [{ path, message }],
})

/** The name of the ImageListPullJob that owns a job. */
function listThatMade({ metadata }: Json): string | undefined {
  const owners = isObject(metadata) && Array.isArray(metadata.ownerReferences) ? metadata.ownerReferences : []
  const list = owners.find(
    owner => isObject(owner) && owner.kind === "ImageListPullJob" && versions.includes(String(owner.apiVersion)),
  )
  return list && String(list.name)
}

const namespaceOf = ({ metadata }: Json) =>
  isObject(metadata) && typeof metadata.namespace === "string" ? metadata.namespace : undefined

function without(names: Readonly<Record<string, string>>, value: unknown, path: string, remarks: Remark[]): unknown {
  if (!isObject(value)) return value
  const kept = Object.entries(value).filter(([name, each]) => {
    if (!Object.hasOwn(names, name)) return true
    if (isWritten(each)) remarks.push({ path: `${path}.${name}`, message: names[name]! })
    return false
  })
  return Object.fromEntries(kept)
}

/** Labels and annotations in which OpenKruise keeps notes: here they would be out of date from the start. */
function withoutOwnKeys(value: Json, remarks: Remark[]): Json {
  if (!isObject(value.metadata)) return value
  const metadata = { ...value.metadata }
  for (const field of ["labels", "annotations"]) {
    const keys = metadata[field]
    if (!isObject(keys)) continue
    const kept = Object.entries(keys).filter(([key]) => {
      const isOwn = /^([a-z0-9-]+\.)*kruise\.io\//.test(key)
      if (isOwn) remarks.push({ path: `metadata.${field}[${key}]`, message: "dropped: only OpenKruise reads it" })
      return !isOwn
    })
    if (kept.length > 0) metadata[field] = Object.fromEntries(kept)
    else delete metadata[field]
  }
  return { ...value, metadata }
}
