import type { NodeImage } from "#api/v1alpha1/nodeimage/index.ts"
import { type Instant, parseInstant } from "#lib/instant.ts"
import { clip } from "#lib/text.ts"
import type { Transfer } from "./transfer.ts"

/** A node, reduced to what decides whether it is given images. */
export type NodeFacts = {
  readonly resourceVersion: string
  readonly uid: string
  readonly labels: Readonly<Record<string, string>>
  readonly isReady: boolean
  readonly isWindows: boolean
}

/** One image that a NodeImage asks for, and what the node's agent says of it. */
export type Entry = {
  readonly name: string
  readonly tag: string
  readonly version: number
  /** The uids of the jobs that want it. */
  readonly owners: readonly string[]
  /** When it was asked for. */
  readonly askedAt: Instant
  /** Undefined until the agent has said something of this version. */
  readonly phase: "Waiting" | "Pulling" | "Succeeded" | "Failed" | undefined
  readonly reason: string
  readonly message: string
  readonly attempts: number
  readonly transfer: Transfer | undefined
  /** How long it stays after its end, where it was written by hand. */
  readonly ttlSeconds: number | undefined
  /** What a container that runs it reports, where the runtime says so. */
  readonly digest: string
  /** The jobs whose credentials are there, and the key they were sealed to. */
  readonly sealed: readonly { readonly job: string; readonly key: string }[]
}

/** A NodeImage, reduced to its entries. There are as many as nodes, so it is small. */
export type NodeImageFacts = {
  readonly resourceVersion: string
  readonly uid: string
  /** Of the node that it was made for; a replaced node of the same name has another one. */
  readonly nodeUid: string
  readonly publicKey: string
  readonly entries: readonly Entry[]
}

export const isFinished = ({ phase }: Pick<Entry, "phase">) => phase === "Succeeded" || phase === "Failed"

type Json = Record<string, unknown>
type Meta = {
  resourceVersion?: string
  uid?: string
  labels?: Record<string, string>
  ownerReferences?: { kind?: string; uid?: string }[]
}

export function readNode(object: { metadata: object }): NodeFacts {
  const { resourceVersion = "", uid = "", labels = {} } = object.metadata as Meta
  const { conditions } = ((object as Json).status ?? {}) as { conditions?: { type?: string; status?: string }[] }
  return {
    resourceVersion,
    uid,
    labels,
    isReady: conditions?.some(({ type, status }) => type === "Ready" && status === "True") ?? false,
    isWindows: labels["kubernetes.io/os"] === "windows",
  }
}

/** The agent of a node writes the status, and root on a node may be hostile: what is kept is bounded. */
export function readNodeImage(object: { metadata: object }): NodeImageFacts {
  const { resourceVersion = "", uid = "", ownerReferences = [] } = object.metadata as Meta
  const { spec, status } = object as unknown as NodeImage
  return {
    resourceVersion,
    uid,
    nodeUid: ownerReferences.find(({ kind }) => kind === "Node")?.uid ?? "",
    publicKey: status?.publicKey ?? "",
    entries: Object.entries(spec?.images ?? {}).flatMap(([name, { tags = [] }]) =>
      tags.map(tag => entryOf(name, tag, status?.imageStatuses?.[name]?.tags)),
    ),
  }
}

type Tag = NodeImage["spec"]["images"][string]["tags"][number]
type Told = NonNullable<NodeImage["status"]>["imageStatuses"][string]["tags"]

function entryOf(name: string, written: Tag, told: Told | undefined): Entry {
  const { tag, version = 0, ownerReferences = [], createdAt, sealedCredentials = [], pullPolicy } = written
  // What was said of an earlier version says nothing of this one.
  const answer = told?.find(each => each.tag === tag && each.version >= version)
  return {
    name,
    tag,
    version,
    owners: ownerReferences.map(owner => owner.uid),
    askedAt: parseInstant(createdAt) ?? 0,
    phase: answer?.phase,
    reason: answer?.reason ?? "",
    message: clip(answer?.message ?? "", 256),
    attempts: answer?.attempts ?? 0,
    transfer: answer?.phase === "Pulling" ? answer.transfer : undefined,
    ttlSeconds: pullPolicy?.ttlSecondsAfterFinished,
    digest: answer?.digest ?? "",
    sealed: sealedCredentials.map(({ job, key }) => ({ job, key })),
  }
}
