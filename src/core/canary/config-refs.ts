import { createHash } from "node:crypto"
import { maxConfigName, maxTrackedConfigs } from "#api/v1alpha1/canary/bounds.ts"
import { group } from "#api/v1alpha1/group.ts"
import { annotationsOf, type PodTemplate } from "../in-place/template.ts"
import { digestOf } from "./checksum.ts"

/** ConfigMaps and Secrets that a template names, and what is kept of them: a checksum each. */

/** What is read of a template about ConfigMaps and Secrets. */
export type PodSpec = {
  readonly volumes?: readonly Volume[]
  readonly containers?: readonly Container[]
  readonly initContainers?: readonly Container[]
}
type Ref = { readonly name?: string; readonly optional?: boolean }
type Volume = {
  readonly configMap?: Ref
  readonly secret?: { readonly secretName?: string; readonly optional?: boolean }
  readonly projected?: { readonly sources?: readonly { readonly configMap?: Ref; readonly secret?: Ref }[] }
}
type Container = {
  readonly env?: readonly { readonly valueFrom?: { readonly configMapKeyRef?: Ref; readonly secretKeyRef?: Ref } }[]
  readonly envFrom?: readonly { readonly configMapRef?: Ref; readonly secretRef?: Ref }[]
}

/** `configmap/NAME` or `secret/NAME`; optional: pods start without it. */
export type ConfigRef = { readonly key: string; readonly isOptional: boolean }

const mapKey = "configmap/"
const secretKey = "secret/"

export const isConfigMap = (key: string): boolean => key.startsWith(mapKey)
export const nameIn = (key: string): string => key.slice(key.indexOf("/") + 1)

/** The ConfigMaps and Secrets that a template names, each once, in the order of their names. */
export function configRefsOf({ volumes, containers, initContainers }: PodSpec): ConfigRef[] {
  const isOptional = new Map<string, boolean>()
  const add = (prefix: string, name: string | undefined, optional: boolean | undefined) => {
    if (name && name.length <= maxConfigName)
      isOptional.set(prefix + name, (isOptional.get(prefix + name) ?? true) && optional === true)
  }
  const map = (ref: Ref | undefined) => add(mapKey, ref?.name, ref?.optional)
  const secret = (ref: Ref | undefined) => add(secretKey, ref?.name, ref?.optional)
  for (const { configMap, secret: mounted, projected } of volumes ?? []) {
    map(configMap)
    add(secretKey, mounted?.secretName, mounted?.optional)
    for (const source of projected?.sources ?? []) {
      map(source.configMap)
      secret(source.secret)
    }
  }
  for (const { env, envFrom } of [...(initContainers ?? []), ...(containers ?? [])]) {
    for (const { valueFrom } of env ?? []) {
      map(valueFrom?.configMapKeyRef)
      secret(valueFrom?.secretKeyRef)
    }
    for (const { configMapRef, secretRef } of envFrom ?? []) {
      map(configMapRef)
      secret(secretRef)
    }
  }
  const keys = [...isOptional.keys()].sort().slice(0, maxTrackedConfigs)
  return keys.map(key => ({ key, isOptional: isOptional.get(key)! }))
}

/**
 * On the template of a workload whose configuration differs from what was promoted: so a change of configuration alone is
 * a new revision. It stays with the revision.
 */
export const configMark = `${group}/config`

/** What a template says about configuration. The mark is empty where it has none. */
export type ConfigsNamed = { readonly refs: readonly ConfigRef[]; readonly mark: string }

export const configsNamedIn = (template: PodTemplate): ConfigsNamed => ({
  refs: configRefsOf((template.spec ?? {}) as PodSpec),
  mark: String(annotationsOf(template)[configMark] ?? ""),
})

/** The template with another mark, or with none. */
export function withMark(template: PodTemplate, mark: string): PodTemplate {
  const { [configMark]: _, ...others } = annotationsOf(template)
  return {
    ...template,
    metadata: { ...template.metadata, annotations: mark ? { ...others, [configMark]: mark } : others },
  }
}

type Content = { readonly data?: object; readonly binaryData?: object }

/**
 * The checksum of a ConfigMap or Secret. A salt keeps a Secret from being guessed by its checksum: many users may read the
 * status of a Canary, and a password may be short.
 */
export const contentChecksum = ({ data = {}, binaryData = {} }: Content, salt = ""): string =>
  digestOf(salt ? [data, binaryData, salt] : [data, binaryData])

/** In place of a checksum: an optional object that does not exist. */
export const absent = "absent"

/** Values of an annotation of a ConfigMap or Secret by which it is not tracked: Flagger's, and ours. */
const optOuts = [`${group}/config-tracking`, "flagger.app/config-tracking"]

/** Secrets that another program renews by itself. Pods follow them, and a renewal is nothing to prove. */
const renewed = ["cert-manager.io/certificate-name", "reconcile.external-secrets.io/data-hash"]

/** The types whose content a person writes; tokens and credentials of registries are not among them. */
const typesOfSecrets = ["Opaque", "kubernetes.io/basic-auth", "kubernetes.io/ssh-auth", "kubernetes.io/tls"]

/** Its owner does not want it to be tracked. */
export function isLeftOut(annotations: Readonly<Record<string, string>> = {}, secretType?: string): boolean {
  if (optOuts.some(name => annotations[name] === "disabled")) return true
  if (secretType === undefined) return false
  return !typesOfSecrets.includes(secretType) || renewed.some(name => annotations[name] !== undefined)
}

/**
 * What is added to the name of a ConfigMap for its snapshot: the same for the same content of the same Canary, so that no
 * other Canary uses the snapshot.
 */
export const snapshotSuffix = (canary: string, checksum: string): string =>
  createHash("sha256")
    .update(JSON.stringify([canary, checksum]))
    .digest("hex")
    .slice(0, 16)

/** The policy by which new pods read snapshots. */
export const snapshotPolicy = "aim-canary-snapshots"

export const snapshotName = (name: string, suffix: string): string => `${name}-${suffix}`
const snapshotPattern = /-[0-9a-f]{16}$/

/** The names of ConfigMaps of a pod that may be snapshots. */
export const snapshotsIn = (spec: PodSpec): string[] =>
  configRefsOf(spec).flatMap(({ key }) => (isConfigMap(key) && snapshotPattern.test(key) ? [nameIn(key)] : []))
