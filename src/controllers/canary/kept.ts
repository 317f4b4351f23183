import { checksumOf } from "#core/canary/checksum.ts"
import { type ConfigsNamed, configsNamedIn } from "#core/canary/config-refs.ts"
import { componentLabel, componentRevisionLabel } from "#core/canary/oam.ts"
import { endedLabel } from "#core/canary/run-object.ts"
import { heldMark, revisionLabel, strategyAnnotation } from "#core/in-place/names.ts"
import { hashLabel, imagesOf, labelsOf, type PodTemplate } from "#core/in-place/template.ts"
import type { Held } from "#runtime/kind-controller.ts"
import type { KubeObject } from "#runtime/resource.ts"
import type { Json } from "./facts.ts"

export const revisionKey = "deployment.kubernetes.io/revision"

/** Something with a template, as a cache keeps it. */
export type WithTemplate = KubeObject & { readonly template: KeptTemplate }

/** A Deployment, ReplicaSet, StatefulSet or DaemonSet: what a run reads of it. Its `spec` is without the template. */
export type KeptWorkload = WithTemplate & { readonly spec: Json; readonly status: Json }

/** A ControllerRevision. */
export type KeptRevision = WithTemplate & { readonly revision: number }

/** What every look asks of a template. */
type TemplateFacts = {
  readonly checksum: string
  /** ConfigMaps and Secrets that it names. */
  readonly configs: ConfigsNamed
  readonly images: readonly string[]
}

/** As text, which is a fraction of the size: only a few writes need all of it, and a namespace has many revisions. */
class KeptTemplate {
  readonly text: string
  #facts: TemplateFacts | undefined
  #labels: Readonly<Record<string, string>> | undefined

  constructor(text: string) {
    this.text = text
  }

  get whole(): PodTemplate {
    return JSON.parse(this.text)
  }

  /** Of its pods. */
  get labels(): Readonly<Record<string, string>> {
    this.#labels ??= labelsOf(this.whole) as Readonly<Record<string, string>>
    return this.#labels
  }

  get facts(): TemplateFacts {
    this.#facts ??= factsOf(this.whole)
    return this.#facts
  }
}

const factsOf = (template: PodTemplate): TemplateFacts => ({
  checksum: checksumOf(template),
  configs: configsNamedIn(template),
  images: [...imagesOf(template).values()].slice(0, 8),
})

const labelsRead = [heldMark, endedLabel, hashLabel, revisionLabel, componentLabel, componentRevisionLabel]
const annotationsRead = [revisionKey, heldMark, strategyAnnotation]

export function keepWorkload(object: KubeObject, before?: Held<WithTemplate>): Held<KeptWorkload> {
  const { spec, status = {} } = object as Json
  const { template, ...rest } = spec ?? {}
  return keep(object, template, before, {
    spec: rest as Json,
    status: { ...status, conditions: (status.conditions ?? []).filter(isRead) } as Json,
  })
}

/** A ControllerRevision is a patch of the workload. */
export function keepRevision(object: KubeObject, before?: Held<WithTemplate>): Held<KeptRevision> {
  const { data, revision = 0 } = object as Json
  const { $patch: _, ...template } = data?.spec?.template ?? {}
  return keep(object, template, before, { revision: revision as number })
}

/** Most events leave the template as it was: then what was read of it stays, too. */
function keep<T>(object: KubeObject, template: PodTemplate = {}, before: Held<WithTemplate> | undefined, own: T) {
  const {
    name,
    namespace,
    uid,
    resourceVersion = "",
    generation,
    deletionTimestamp,
    ownerReferences,
    ...rest
  } = object.metadata as Json
  const text = JSON.stringify(template)
  const known = before?.object.template
  const metadata: KubeObject["metadata"] = {
    ...{ name, namespace, uid, resourceVersion, generation },
    ...(deletionTimestamp !== undefined && { deletionTimestamp }),
    ...(ownerReferences && { ownerReferences }),
    labels: some(rest.labels, labelsRead),
    annotations: some(rest.annotations, annotationsRead),
  }
  const kept = { metadata, ...own, template: known?.text === text ? known : new KeptTemplate(text) }
  return { resourceVersion: resourceVersion as string, object: kept }
}

/** That its pods were refused, and that its controller has seen the pause. */
const isRead = ({ type, reason }: Json) => type === "ReplicaFailure" || reason === "DeploymentPaused"

const none = {}

function some(all: Readonly<Record<string, string>> = none, names: readonly string[]): Record<string, string> {
  const found = names.flatMap(name => (all[name] === undefined ? [] : [[name, all[name]] as const]))
  return found.length > 0 ? Object.fromEntries(found) : none
}
