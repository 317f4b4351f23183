import type { Client } from "#runtime/client/index.ts"
import { KubeError } from "#runtime/client/index.ts"
import type { Clock } from "#runtime/clock.ts"
import { apiVersionOf, type KubeObject, type Resource } from "#runtime/resource.ts"
import type { Json } from "../object.ts"
import {
  type Condition,
  type ConditionRule,
  evaluateRule,
  type FeedbackRule,
  feedbackOf,
  withCondition,
} from "./status.ts"

const group = "work.open-cluster-management.io"
const works: Resource = { group, version: "v1", plural: "manifestworks", kind: "ManifestWork", namespaced: true }
const applieds: Resource = {
  ...{ group, version: "v1", plural: "appliedmanifestworks", kind: "AppliedManifestWork", namespaced: false },
}
const reviews: Resource = {
  ...{ group: "authorization.k8s.io", version: "v1", plural: "subjectaccessreviews" },
  ...{ kind: "SubjectAccessReview", namespaced: false },
}
const finalizer = "cluster.open-cluster-management.io/manifest-work-cleanup"

type Identifier = { group: string; resource: string; namespace?: string; name: string }
type Meta = { ordinal: number; version: string; kind: string } & Required<Identifier>
type ManifestStatus = {
  resourceMeta: Meta
  conditions: Condition[]
  statusFeedback?: { values: ReturnType<typeof feedbackOf> }
}
type ManifestConfig = {
  resourceIdentifier: Identifier
  updateStrategy?: { type: string; serverSideApply?: { force?: boolean; fieldManager?: string } }
  feedbackRules?: FeedbackRule[]
  conditionRules?: ConditionRule[]
}
type Work = KubeObject & {
  spec: {
    workload?: { manifests?: KubeObject[] }
    deleteOption?: { propagationPolicy: string; selectivelyOrphans?: { orphaningRules?: Identifier[] } }
    executor?: { subject: { serviceAccount: { namespace: string; name: string } } }
    manifestConfigs?: ManifestConfig[]
  }
  status?: { conditions?: Condition[]; resourceStatus?: { manifests?: ManifestStatus[] } }
}
type AppliedResource = Required<Identifier> & { version: string; uid: string }
type Applied = KubeObject & { status?: { appliedResources?: AppliedResource[] } }

export type WorkAgentOptions = {
  /** The name of the cluster, and of its namespace on the hub. */
  cluster: string
  hub: Client
  spoke: Client
  clock: Clock
  /** How often works and their objects are looked at. */
  everyMs?: number
  /** How often everything is applied again, changed or not. */
  resyncMs?: number
}

export type WorkAgent = {
  /** One look at all works. */
  look(): Promise<void>
  /** Looks until it is stopped. What it knows is on the hub and on the cluster: another agent goes on from there. */
  start(): () => void
}

/**
 * Plays the work agent of Open Cluster Management between two API servers, in the order of the original: what is applied
 * and what is reported are two steps, so a report may be about earlier content; the named account is asked for its rights
 * and the write is the agent's own; a work that is being deleted is only cleaned up.
 */
export function createWorkAgent(options: WorkAgentOptions): WorkAgent {
  const { cluster, hub, spoke, clock, everyMs = 1_000, resyncMs = 300_000 } = options
  const appliedAt = new Map<string, { generation: number; at: number }>()
  const { applyOne, appliedWork, clean } = createHands(spoke)

  const patchStatus = (work: Work, status: Work["status"]) =>
    hub.patch<Work>(
      works,
      work.metadata,
      { type: "merge", body: { status } },
      { subresource: "status", fieldManager: "work-agent" },
    )

  async function apply(work: Work): Promise<Work> {
    const key = work.metadata.name
    const generation = work.metadata.generation ?? 0
    const last = appliedAt.get(key)
    if (last?.generation === generation && clock.monotonic() - last.at < resyncMs) return work
    const owner = await appliedWork(key)
    const results: Awaited<ReturnType<typeof applyOne>>[] = []
    for (const [ordinal, manifest] of (work.spec.workload?.manifests ?? []).entries())
      results.push(await applyOne(work, owner, ordinal, manifest))
    const former = work.status?.resourceStatus?.manifests ?? []
    const manifests = results.map(({ meta, condition }): ManifestStatus => {
      const before = former.find(each => isSameObject(each.resourceMeta, meta))
      return { ...before, resourceMeta: meta, conditions: withCondition(before?.conditions, condition, clock.now()) }
    })
    const isWhole = manifests.every(({ conditions }) =>
      conditions.some(each => each.type === "Applied" && each.status === "True"),
    )
    const conditions = withCondition(
      work.status?.conditions,
      {
        ...{ type: "Applied", status: isWhole ? "True" : "False", observedGeneration: generation },
        ...{ reason: isWhole ? "AppliedManifestWorkComplete" : "AppliedManifestWorkFailed", message: "" },
      },
      clock.now(),
    )
    const stored = await patchStatus(work, { ...work.status, conditions, resourceStatus: { manifests } })
    const now = results.flatMap(({ meta: { ordinal: _, kind: __, ...meta }, uid }) => (uid ? [{ ...meta, uid }] : []))
    const dropped = (owner.status?.appliedResources ?? []).filter(
      each => !results.some(({ meta }) => isSameObject(meta, each)),
    )
    const left = await clean(dropped, owner)
    const status = { appliedResources: [...now, ...left] }
    await spoke.patch(applieds, owner.metadata, { type: "merge", body: { status } }, { subresource: "status" })
    appliedAt.set(key, { generation, at: clock.monotonic() })
    return stored
  }

  async function finalize(work: Work) {
    const owner = await spoke.get<Applied>(applieds, { name: `hub-${work.metadata.name}` }).catch(missing)
    const left = owner ? await clean(owner.status?.appliedResources ?? [], owner) : []
    if (left.length > 0) return
    if (owner) await spoke.delete(applieds, owner.metadata).catch(missing)
    appliedAt.delete(work.metadata.name)
    const finalizers = (work.metadata.finalizers ?? []).filter(each => each !== finalizer)
    await hub.patch(works, work.metadata, { type: "merge", body: { metadata: { finalizers } } }).catch(missing)
  }

  /** Reports what the objects show now, under the rules of the present content. */
  async function report(work: Work) {
    const former = work.status?.resourceStatus?.manifests ?? []
    const manifests: ManifestStatus[] = []
    for (const each of former) {
      const { group, version, resource: plural, kind, namespace, name } = each.resourceMeta
      const resource = { group, version, plural, kind, namespaced: namespace !== "" }
      const object = plural
        ? await spoke.get(resource, { name, ...(namespace && { namespace }) }).catch(missing)
        : undefined
      const available = {
        ...{ type: "Available", status: object ? "True" : plural ? "False" : "Unknown", message: "" },
        reason: object ? "ResourceAvailable" : "ResourceNotAvailable",
      }
      let conditions = withCondition(each.conditions, available, clock.now())
      if (!object) {
        manifests.push({ ...each, conditions })
        continue
      }
      const config = configOf(work, each.resourceMeta)
      const read = { apiVersion: apiVersionOf(resource), kind, ...object } as unknown as Json
      for (const rule of config?.conditionRules ?? [])
        conditions = withCondition(
          conditions,
          { ...evaluateRule(rule, read), observedGeneration: work.metadata.generation ?? 0 },
          clock.now(),
        )
      manifests.push({ ...each, conditions, statusFeedback: { values: feedbackOf(config?.feedbackRules, read) } })
    }
    if (JSON.stringify(manifests) === JSON.stringify(former)) return
    await patchStatus(work, { ...work.status, resourceStatus: { manifests } })
  }

  async function lookAt(work: Work) {
    const { metadata } = work
    if (metadata.deletionTimestamp !== undefined)
      return metadata.finalizers?.includes(finalizer) ? finalize(work) : undefined
    if (!metadata.finalizers?.includes(finalizer)) {
      const finalizers = [...(metadata.finalizers ?? []), finalizer]
      await hub.patch(works, metadata, { type: "merge", body: { metadata: { finalizers } } })
      return
    }
    const last = appliedAt.get(metadata.name)?.generation
    const applied = await apply(work)
    // What is reported is a step of its own: in between, Applied is new beside what was said of earlier content.
    if (last === metadata.generation) await report(applied)
  }

  async function look() {
    const { items } = await hub.list<Work>(works, { namespace: cluster })
    for (const work of items)
      try {
        await lookAt(work)
      } catch (error) {
        if (!(error instanceof KubeError)) throw error // a hub or a cluster that does not answer is tried again
      }
  }

  return {
    look,
    start() {
      let isOver = false
      let cancel = () => {}
      const again = async () => {
        await look().catch(error => {
          if (!(error instanceof KubeError)) throw error
        })
        if (!isOver) cancel = clock.after(everyMs, () => void again())
      }
      void again()
      return () => {
        isOver = true
        cancel()
      }
    },
  }
}

/** What the agent does on the cluster. */
function createHands(spoke: Client) {
  const resources = new Map<string, Resource>()

  async function resourceOf({ apiVersion = "", kind = "" }: KubeObject): Promise<Resource> {
    const key = `${apiVersion} ${kind}`
    const known = resources.get(key) ?? (await spoke.discover(apiVersion, kind))
    if (!known) throw new Error(`no matches for kind "${kind}" in version "${apiVersion}"`)
    resources.set(key, known)
    return known
  }

  /** The rights of the named account, one question for each verb. */
  async function checkExecutor({ spec }: Work, meta: Meta, isOwned: boolean) {
    if (!spec.executor) return
    const { namespace, name } = spec.executor.subject.serviceAccount
    const user = `system:serviceaccount:${namespace}:${name}`
    const groups = ["system:serviceaccounts", "system:authenticated", `system:serviceaccounts:${namespace}`]
    const { group, version, resource } = meta
    for (const verb of ["create", "update", "patch", "get", ...(isOwned ? ["delete"] : [])]) {
      const resourceAttributes = { group, version, resource, verb, namespace: meta.namespace, name: meta.name }
      const review = { metadata: { name: "" }, spec: { user, groups, resourceAttributes } }
      const { status } = await spoke.create<KubeObject & { status?: { allowed: boolean } }>(reviews, review)
      if (!status?.allowed)
        throw new Error(
          `not allowed to apply the resource ${group} ${resource}, ${meta.namespace} ${meta.name}, will try again in 1m0s`,
        )
    }
  }

  async function applyOne(work: Work, owner: Applied, ordinal: number, manifest: KubeObject) {
    const { name, namespace = "" } = manifest.metadata
    let meta: Meta = { ordinal, group: "", version: "", kind: manifest.kind ?? "", resource: "", namespace, name }
    const applied = (isTrue: boolean, message: string) => ({
      ...{
        type: "Applied",
        status: isTrue ? "True" : "False",
        message,
        observedGeneration: work.metadata.generation ?? 0,
      },
      reason: isTrue ? "AppliedManifestComplete" : "AppliedManifestFailed",
    })
    try {
      const resource = await resourceOf(manifest)
      meta = { ...meta, group: resource.group, version: resource.version, resource: resource.plural }
      const isOwned = owns(work, meta)
      await checkExecutor(work, meta, isOwned)
      const { updateStrategy } = configOf(work, meta) ?? {}
      const { force = false, fieldManager = "work-agent" } = updateStrategy?.serverSideApply ?? {}
      const body = isOwned ? owned(manifest, owner) : manifest
      const object = await spoke.patch(resource, manifest.metadata, { type: "apply", body, force }, { fieldManager })
      return { meta, uid: object.metadata.uid ?? "", condition: applied(true, "Apply manifest complete") }
    } catch (error) {
      const said = error instanceof KubeError ? error.said : (error as Error).message
      return { meta, uid: "", condition: applied(false, `Failed to apply manifest: ${said}`) }
    }
  }

  /** Deletes the objects that this work owns, and returns those that are still there. */
  async function clean(list: readonly AppliedResource[], owner: Applied): Promise<AppliedResource[]> {
    const left: AppliedResource[] = []
    for (const each of list) {
      const resource = {
        group: each.group,
        version: each.version,
        plural: each.resource,
        kind: "",
        namespaced: each.namespace !== "",
      }
      const name = { name: each.name, ...(each.namespace && { namespace: each.namespace }) }
      const object = await spoke.get(resource, name).catch(missing)
      if (!object?.metadata.ownerReferences?.some(({ uid }) => uid === owner.metadata.uid)) continue
      if (object.metadata.uid !== each.uid) continue
      if (object.metadata.deletionTimestamp === undefined)
        await spoke.delete(resource, name, { uid: each.uid, propagationPolicy: "Background" }).catch(missing)
      if (await spoke.get(resource, name).catch(missing)) left.push(each)
    }
    return left
  }

  async function appliedWork(name: string): Promise<Applied> {
    const found = await spoke.get<Applied>(applieds, { name: `hub-${name}` }).catch(missing)
    return found ?? (await spoke.create<Applied>(applieds, { metadata: { name: `hub-${name}` } }))
  }

  return { applyOne, appliedWork, clean }
}

const missing = (error: unknown) => {
  if (error instanceof KubeError && error.kind === "NotFound") return undefined
  throw error
}

const configOf = ({ spec }: Work, meta: Meta) =>
  spec.manifestConfigs?.find(({ resourceIdentifier }) => isSameObject(resourceIdentifier, meta))

const isSameObject = (a: Identifier, b: Identifier) =>
  a.group === b.group && a.resource === b.resource && (a.namespace ?? "") === (b.namespace ?? "") && a.name === b.name

/** Whether an object goes with its work. */
function owns({ spec: { deleteOption } }: Work, meta: Meta): boolean {
  if (!deleteOption || deleteOption.propagationPolicy === "Foreground") return true
  if (deleteOption.propagationPolicy === "Orphan") return false
  return !deleteOption.selectivelyOrphans?.orphaningRules?.some(each => isSameObject(each, meta))
}

const owned = (manifest: KubeObject, { metadata: { name, uid = "" } }: Applied): KubeObject => ({
  ...manifest,
  metadata: {
    ...manifest.metadata,
    ownerReferences: [{ apiVersion: `${group}/v1`, kind: "AppliedManifestWork", name, uid }],
  },
})
