import { ImageListPullJob } from "#api/v1alpha1/imagelistpulljob/index.ts"
import { maxImages } from "#api/v1alpha1/pull-fields.ts"
import { joinImage } from "#core/pulls/image-name.ts"
import { counted, nameSome } from "#lib/text.ts"
import { besideSpec, type Conversion, isObject, type Json, judged, ofTheOriginal, type Remark } from "./judged.ts"
import { grantRemark, isWritten } from "./openkruise-remarks.ts"

/** An image that a NodeImage of OpenKruise lists. */
type Entry = {
  /** Where its tag stands, and where its image does. */
  path: string
  imagePath: string
  image: string
  /** The jobs that want it, as `KIND NAMESPACE/NAME`. */
  owners: string[]
  /** The namespace of its Secrets. */
  namespace: string | undefined
  secretsPath: string
  /** The spec of a job that pulls it in the same way. */
  settings: Json
}

/** What is found on the way. */
class Findings {
  readonly remarks: Remark[] = []
  readonly problems: Remark[] = []
  readonly #repeated = new Map<string, { path: string; count: number }>()

  remark(path: string, message: string) {
    this.remarks.push({ path, message })
  }

  problem(path: string, message: string) {
    this.problems.push({ path, message })
  }

  /** A remark that holds for many images is made once: a node has hundreds of them. */
  dropped(path: string, why: string) {
    const before = this.#repeated.get(why)
    this.#repeated.set(why, { path: before?.path ?? path, count: (before?.count ?? 0) + 1 })
  }

  all(): Remark[] {
    const repeated = [...this.#repeated].map(([why, { path, count }]) => ({
      path,
      message: count === 1 ? `dropped: ${why}` : `dropped, as in ${counted(count - 1, "other image")}: ${why}`,
    }))
    return [...this.remarks, ...repeated]
  }
}

/**
 * Converts a NodeImage of OpenKruise. One that jobs have filled is not needed: the controller makes its own, from the
 * converted jobs. Images that belong to no job were written by hand; they become jobs for this node, because a job
 * reports its progress, ends, and can name Secrets, which a NodeImage of ours cannot.
 */
export function nodeImage(value: Json): Conversion {
  const found = new Findings()
  const name = nodeName(value.metadata, found)
  const entries = entriesOf(value.spec, found)
  if (found.problems.length > 0) return { ok: false, problems: found.problems }
  const jobs = jobsOf(entries.filter(({ owners }) => owners.length === 0))
  for (const remark of summary(name, entries)) found.remarks.unshift(remark)

  const conversions = jobs.map((entriesOfJob, index) => jobFor(name, jobName(name, index), entriesOfJob))
  const problems = conversions.flatMap(each => (each.ok ? [] : each.problems))
  if (problems.length > 0) return { ok: false, problems }
  const converted = conversions.filter(each => each.ok)
  return {
    ok: true,
    objects: converted.flatMap(({ objects }) => objects),
    remarks: [
      ...found.all(),
      ...converted.flatMap(({ remarks }) => remarks),
      ...lostMetadata(value.metadata),
      ...besideSpec(value),
    ],
  }
}

/** The number stands in front, so that the second job of `node-1` is not called like the first one of `node-1-2`. */
const jobName = (node: string, index: number) => (index === 0 ? `images-of-${node}` : `images-${index + 1}-of-${node}`)

function nodeName(metadata: unknown, found: Findings): string {
  const name = isObject(metadata) ? metadata.name : undefined
  if (typeof name === "string" && name !== "") return name
  found.problem("metadata.name", "is missing: write the name of the node")
  return ""
}

function summary(node: string, entries: readonly Entry[]): Remark[] {
  const owners = [...new Set(entries.flatMap(each => each.owners))]
  const owned = entries.filter(each => each.owners.length > 0).length
  // An image with Secrets of several namespaces has as many entries.
  const byHand = new Set(entries.map(each => each.path)).size - owned
  const path = "spec.images"
  const remarks: Remark[] = []
  if (byHand > 0)
    remarks.push({
      path,
      message: `${counted(byHand, "image")} of no job: converted to a job for node ${node}; aim makes NodeImages itself`,
    })
  if (owned > 0)
    remarks.push({
      path,
      message: `${counted(owned, "image")} not converted: brought by ${nameSome(owners.slice(0, 5), owners.length)}; convert the jobs instead`,
    })
  if (entries.length === 0)
    remarks.push({ path, message: "not converted: it lists no image, and aim makes NodeImages itself" })
  return remarks
}

function lostMetadata(metadata: unknown): Remark[] {
  const words: Record<string, string> = {
    labels: "dropped: OpenKruise copies them from the node",
    annotations: "dropped: a job is made for the node, and the NodeImage itself is not needed",
  }
  return Object.keys(isObject(metadata) ? metadata : {})
    .filter(field => field !== "name")
    .map(field => ({
      path: `metadata.${field}`,
      message: Object.hasOwn(words, field) ? words[field]! : ofTheOriginal,
    }))
}

function entriesOf(spec: unknown, found: Findings): Entry[] {
  if (!isWritten(spec)) return []
  if (!isObject(spec)) {
    found.problem("spec", "is not an object: write images")
    return []
  }
  unknownFields(spec, ["images"], "spec", found)
  if (!isWritten(spec.images)) return []
  if (isObject(spec.images)) return Object.entries(spec.images).flatMap(([name, each]) => imageOf(name, each, found))
  found.problem("spec.images", "is not an object: write images by their names")
  return []
}

function imageOf(name: string, value: unknown, found: Findings): Entry[] {
  const path = `spec.images[${name}]`
  if (!isObject(value) || !Array.isArray(value.tags)) {
    found.problem(isObject(value) ? `${path}.tags` : path, "is not a list of tags: write tags: [{tag: …}]")
    return []
  }
  unknownFields(value, ["pullSecrets", "sandboxConfig", "tags"], path, found)
  return value.tags.flatMap((tag, index) => tagOf({ name, value, path }, tag, `${path}.tags[${index}]`, found))
}

const knownOfTag = ["tag", "createdAt", "version", "imagePullPolicy", "ownerReferences", "pullPolicy", "pullSecrets"]
const knownOfPolicy = ["timeoutSeconds", "backoffLimit", "ttlSecondsAfterFinished", "activeDeadlineSeconds"]

type Image = { name: string; value: Json; path: string }

/** One entry; with Secrets of several namespaces, one for each of them. */
function tagOf(image: Image, value: unknown, path: string, found: Findings): Entry[] {
  if (!isObject(value) || typeof value.tag !== "string" || value.tag === "") {
    found.problem(isObject(value) ? `${path}.tag` : path, "is not a tag: write {tag: …}")
    return []
  }
  unknownFields(value, knownOfTag, path, found)
  const policy = isWritten(value.pullPolicy) ? value.pullPolicy : {}
  if (isObject(policy)) unknownFields(policy, knownOfPolicy, `${path}.pullPolicy`, found)
  else found.problem(`${path}.pullPolicy`, "is not an object: write timeoutSeconds, backoffLimit, …")
  const owners = ownersOf(value.ownerReferences, `${path}.ownerReferences`, found)
  const entry = { path, imagePath: image.path, image: joinImage({ name: image.name, tag: value.tag }), owners }
  if (owners.length > 0 || !isObject(policy))
    return [{ ...entry, namespace: undefined, secretsPath: path, settings: {} }]

  if (isWritten(value.createdAt)) found.dropped(`${path}.createdAt`, "the job has a creation time of its own")
  if (isWritten(value.version))
    found.dropped(`${path}.version`, "another job, with imagePullPolicy: Always, asks for another pull")
  const settings = {
    ...policiesOf(policy, `${path}.pullPolicy`, found),
    imagePullPolicy: value.imagePullPolicy,
    sandboxConfig: image.value.sandboxConfig,
  }
  const groups = secretsOf(image, value, path, found)
  if (groups.length > 1) severalNamespaces(groups, image, found)
  return (groups.length > 0 ? groups : [{ namespace: undefined, path, names: undefined }]).map(
    ({ namespace, path: secretsPath, names: pullSecrets }) => ({
      ...{ ...entry, namespace, secretsPath },
      settings: present({ pullSecrets, ...settings }),
    }),
  )
}

function severalNamespaces([first]: readonly Secrets[], { value, path }: Image, found: Findings): void {
  found.remark(
    first!.path,
    "Secrets of several namespaces: a job in each, and the node tries the accounts of all of them",
  )
  if (isWritten(value.sandboxConfig))
    found.remark(
      `${path}.sandboxConfig`,
      "not given to the runtime while jobs of several namespaces want the image: copy the Secrets into one, and keep one job",
    )
}

function ownersOf(value: unknown, path: string, found: Findings): string[] {
  if (!isWritten(value)) return []
  if (!Array.isArray(value) || !value.every(isObject)) {
    found.problem(path, "is not a list of objects")
    return []
  }
  return value.map(({ kind, namespace, name }) =>
    [kind ?? "object", [namespace, name].filter(isWritten).join("/")].join(" "),
  )
}

function policiesOf(policy: Json, path: string, found: Findings): Json {
  const { timeoutSeconds, backoffLimit, ttlSecondsAfterFinished, activeDeadlineSeconds } = policy
  const allowed = timeoutSeconds ?? 600
  const isShort =
    typeof activeDeadlineSeconds === "number" && typeof allowed === "number" && activeDeadlineSeconds < allowed
  if (isShort)
    found.remark(
      `${path}.timeoutSeconds`,
      `lowered from ${allowed} to ${activeDeadlineSeconds}, the activeDeadlineSeconds: no pull may outlast its job`,
    )
  const pullPolicy = present({ timeoutSeconds: isShort ? activeDeadlineSeconds : timeoutSeconds, backoffLimit })
  const completionPolicy = present({ activeDeadlineSeconds, ttlSecondsAfterFinished })
  return present({
    pullPolicy: Object.keys(pullPolicy).length > 0 ? pullPolicy : undefined,
    completionPolicy: Object.keys(completionPolicy).length > 0 ? completionPolicy : undefined,
  })
}

/** Secrets of one namespace, and where the first of them is listed. */
type Secrets = { namespace: string | undefined; names: string[]; path: string }

/** v1beta1 has Secrets at each tag, and keeps those at the image for older manifests: both are tried. */
function secretsOf(image: Image, tag: Json, tagPath: string, found: Findings): Secrets[] {
  const written = [
    ...listAt(tag.pullSecrets, `${tagPath}.pullSecrets`, found),
    ...listAt(image.value.pullSecrets, `${image.path}.pullSecrets`, found),
  ]
  const groups = new Map<string | undefined, Secrets>()
  for (const { value, path } of written) {
    if (!isObject(value) || typeof value.name !== "string") {
      found.problem(path, "is not a Secret: write {namespace: …, name: …}")
      continue
    }
    unknownFields(value, ["namespace", "name", "mode"], path, found)
    if (isWritten(value.mode))
      found.dropped(`${path}.mode`, "aim reads the Secret itself, and seals the credentials for the node")
    const namespace = typeof value.namespace === "string" ? value.namespace : undefined
    if (namespace === undefined && isWritten(value.namespace))
      found.problem(`${path}.namespace`, "is not a namespace: write its name")
    const group = groups.get(namespace) ?? { namespace, names: [], path: path.replace(/\[\d+\]$/, "") }
    groups.set(namespace, group)
    if (!group.names.includes(value.name)) group.names.push(value.name)
  }
  return [...groups.values()]
}

function listAt(value: unknown, path: string, found: Findings): { value: unknown; path: string }[] {
  if (!isWritten(value)) return []
  if (Array.isArray(value)) return value.map((each, index) => ({ value: each, path: `${path}[${index}]` }))
  found.problem(path, "is not a list: write [{namespace: …, name: …}]")
  return []
}

/** Images with the same settings are one job. */
function jobsOf(entries: readonly Entry[]): Entry[][] {
  const groups = Map.groupBy(entries, ({ namespace, settings }) => JSON.stringify([namespace, settings]))
  return [...groups.values()].flatMap(group =>
    Array.from({ length: Math.ceil(group.length / maxImages) }, (_, index) =>
      group.slice(index * maxImages, (index + 1) * maxImages),
    ),
  )
}

function jobFor(node: string, name: string, entries: readonly Entry[]): Conversion {
  const { namespace, settings, secretsPath } = entries[0]!
  const metadata = namespace === undefined ? { name } : { name, namespace }
  const spec = { images: entries.map(({ image }) => image), selector: { names: [node] }, ...settings }
  const remarks = [
    namespace === undefined
      ? { path: "metadata", message: `${name} has no namespace yet: kubectl -n decides` }
      : { path: secretsPath, message: `${name} is in ${namespace}, the namespace of its Secrets` },
    ...grantRemark(settings.pullSecrets, namespace, secretsPath),
  ]
  const conversion = judged(ImageListPullJob, { metadata }, spec, [])
  const placed = (remark: Remark) => ({ ...remark, path: originOf(remark.path, entries) })
  return conversion.ok
    ? { ...conversion, remarks: [...remarks, ...conversion.remarks.map(placed)] }
    : { ...conversion, problems: conversion.problems.map(placed) }
}

/** Which field of the NodeImage a field of the job came from: messages name the lines of the file that was read. */
function originOf(path: string, entries: readonly Entry[]): string {
  const at = /^spec\.images\[(\d+)\]/.exec(path)
  if (at) return `${entries[Number(at[1])]!.path}.tag`
  const { path: tag, imagePath, secretsPath } = entries[0]!
  const origins = {
    "spec.selector": "metadata.name",
    "spec.pullSecrets": secretsPath,
    "spec.pullPolicy": `${tag}.pullPolicy`,
    "spec.completionPolicy": `${tag}.pullPolicy`,
    "spec.imagePullPolicy": `${tag}.imagePullPolicy`,
    "spec.sandboxConfig": `${imagePath}.sandboxConfig`,
  }
  const [prefix, origin] = Object.entries(origins).find(([each]) => path.startsWith(each)) ?? ["", ""]
  // These are made of several fields, or of one that is no list.
  if (prefix === "spec.selector" || prefix === "spec.pullSecrets") return origin
  return origin + path.slice(prefix.length)
}

function unknownFields(value: Json, known: readonly string[], path: string, { remarks }: Findings) {
  for (const name of Object.keys(value))
    if (!known.includes(name))
      remarks.push({ path: `${path}.${name}`, message: "dropped: OpenKruise has no such field" })
}

const present = (fields: Json): Json =>
  Object.fromEntries(Object.entries(fields).filter(([, value]) => isWritten(value)))
