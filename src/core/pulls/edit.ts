import type { ImagePullJobSpec } from "#api/v1alpha1/imagepulljob/index.ts"
import type { ImageTag, NodeImageSpec, NodeImageStatus } from "#api/v1alpha1/nodeimage/index.ts"
import { maxImages } from "#api/v1alpha1/pull-fields.ts"
import { formatInstant, type Instant } from "#lib/instant.ts"
import type { ImageName } from "./image-name.ts"

/** An image that a job wants on a node. */
export type Addition = {
  readonly image: Pick<ImageName, "name" | "tag">
  readonly owner: { namespace: string; name: string; uid: string; apiVersion: string; kind: string }
  readonly policy: Pick<ImagePullJobSpec, "imagePullPolicy" | "priority" | "pullPolicy">
  readonly sealed?: { readonly key: string; readonly box: string } | undefined
}

export type Edit = {
  readonly additions: readonly Addition[]
  /** Whether a job still wants an entry. */
  readonly isWanted: (uid: string, entry: { name: string; tag: string }) => boolean
  /** Entries of no job whose time to live is over. */
  readonly expired: readonly { name: string; tag: string; version: number }[]
  /** What a job wants the runtime to be given beside its image. */
  readonly sandboxConfigOf: (uid: string) => SandboxConfig | undefined
  readonly now: Instant
}

export type Edited = {
  readonly spec: NodeImageSpec
  /** Additions for which there is no room. */
  readonly left: readonly Addition[]
}

type SandboxConfig = NonNullable<ImagePullJobSpec["sandboxConfig"]>
type Flat = { name: string; tag: ImageTag }

/**
 * The spec of a NodeImage with everything that is to change on its node, in one write: new entries, owners that are
 * gone, entries that nothing wants any more or whose time is over, and credentials whose pull has ended. Doing it twice changes nothing.
 */
export function edited(
  before: { spec: NodeImageSpec; status?: NodeImageStatus | undefined },
  { additions, isWanted, expired, sandboxConfigOf, now }: Edit,
): Edited {
  const toldOf = (name: string, tag: string) => before.status?.imageStatuses[name]?.tags.find(each => each.tag === tag)
  const isOver = ({ name, tag }: Flat) => {
    const told = toldOf(name, tag.tag)
    return told !== undefined && told.version >= tag.version && (told.phase === "Succeeded" || told.phase === "Failed")
  }
  let entries = Object.entries(before.spec.images)
    .flatMap(([name, { tags }]) => tags.map(tag => ({ name, tag })))
    .filter(entry => !(isOver(entry) && expired.some(each => isOf(each, entry))))
    .flatMap(entry => kept(entry, isWanted))
    .map(entry => (isOver(entry) ? unsealed(entry) : entry))
  const left: Addition[] = []
  for (const addition of additions) {
    const same = entries.find(({ name, tag }) => name === addition.image.name && tag.tag === addition.image.tag)
    if (same) entries = entries.map(each => (each === same ? joined(same, addition, isOver(same), now) : each))
    else if (entries.length < maxImages)
      entries = [...entries, fresh(addition, toldOf(addition.image.name, addition.image.tag), now)]
    else left.push(addition)
  }
  return { spec: { images: grouped(entries, before.spec, sandboxConfigOf) }, left }
}

/** What was asked for once more, or by a job, since the entry expired is another one. */
const isOf = (expired: Edit["expired"][number], { name, tag }: Flat) =>
  name === expired.name &&
  tag.tag === expired.tag &&
  tag.version === expired.version &&
  tag.ownerReferences.length === 0

/** An entry that was made by hand has no owner, and stays. */
function kept(entry: Flat, isWanted: Edit["isWanted"]): Flat[] {
  const { name, tag } = entry
  if (tag.ownerReferences.length === 0) return [entry]
  const owners = tag.ownerReferences.filter(({ uid }) => isWanted(uid, { name, tag: tag.tag }))
  if (owners.length === 0) return []
  if (owners.length === tag.ownerReferences.length) return [entry]
  const sealed = tag.sealedCredentials?.filter(({ job }) => owners.some(({ uid }) => uid === job))
  return [{ name, tag: { ...tag, ownerReferences: owners, ...(sealed && { sealedCredentials: sealed }) } }]
}

function unsealed({ name, tag: { sealedCredentials: _, ...tag } }: Flat): Flat {
  return { name, tag }
}

/** What the agent still says of an entry that was removed is no answer to this one. */
const fresh = (
  { image, owner, policy, sealed }: Addition,
  told: { version: number } | undefined,
  now: Instant,
): Flat => ({
  name: image.name,
  tag: {
    tag: image.tag,
    createdAt: formatInstant(now),
    version: told ? told.version + 1 : 0,
    imagePullPolicy: policy.imagePullPolicy,
    priority: policy.priority,
    ownerReferences: [owner],
    pullPolicy: policy.pullPolicy,
    ...(sealed && { sealedCredentials: [{ job: owner.uid, ...sealed }] }),
  },
})

/**
 * One more job for an image that is asked for already. What the agent said before this job came is no proof for it: the
 * image may have been removed since. So an entry that is over is asked for once more.
 */
function joined({ name, tag }: Flat, addition: Addition, isOver: boolean, now: Instant): Flat {
  const { owner, policy, sealed } = addition
  const isNew = !tag.ownerReferences.some(({ uid }) => uid === owner.uid)
  const mustAsk = policy.imagePullPolicy === "Always" && tag.imagePullPolicy !== "Always"
  const others = (tag.sealedCredentials ?? []).filter(({ job }) => job !== owner.uid)
  const asksAgain = isNew && (isOver || mustAsk)
  return {
    name,
    tag: {
      ...tag,
      ...(isNew && { ownerReferences: [...tag.ownerReferences, owner] }),
      priority: Math.max(tag.priority, policy.priority),
      ...(asksAgain && {
        version: tag.version + 1,
        createdAt: formatInstant(now),
        imagePullPolicy: policy.imagePullPolicy,
        pullPolicy: policy.pullPolicy,
      }),
      ...(sealed && { sealedCredentials: [...others, { job: owner.uid, ...sealed }] }),
    },
  }
}

function grouped(
  entries: readonly Flat[],
  before: NodeImageSpec,
  sandboxConfigOf: Edit["sandboxConfigOf"],
): NodeImageSpec["images"] {
  const images: NodeImageSpec["images"] = {}
  for (const { name, tag } of entries) {
    images[name] ??= { tags: [] }
    images[name].tags.push(tag)
  }
  for (const [name, image] of Object.entries(images)) {
    const isByHand = image.tags.some(({ ownerReferences }) => ownerReferences.length === 0)
    const sandboxConfig = isByHand ? before.images[name]?.sandboxConfig : configOf(image.tags, sandboxConfigOf)
    if (sandboxConfig) image.sandboxConfig = sandboxConfig
  }
  return images
}

/** It applies to every pull of the repository on the node: one namespace must not decide it for another. */
function configOf(tags: readonly ImageTag[], sandboxConfigOf: Edit["sandboxConfigOf"]): SandboxConfig | undefined {
  const owners = tags.flatMap(({ ownerReferences }) => ownerReferences)
  if (owners.some(({ namespace }) => namespace !== owners[0]!.namespace)) return undefined
  for (const { uid } of owners) {
    const config = sandboxConfigOf(uid)
    if (config) return config
  }
  return undefined
}
