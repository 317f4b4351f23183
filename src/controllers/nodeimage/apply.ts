import { namesOf } from "#api/names.ts"
import type { NodeImage } from "#api/v1alpha1/nodeimage/index.ts"
import type { PullJob } from "#core/pulls/board.ts"
import { type Addition, edited } from "#core/pulls/edit.ts"
import type { Instant } from "#lib/instant.ts"
import { isSame } from "#lib/same.ts"
import { isFailure } from "#runtime/client/errors.ts"
import { outcomeOf } from "#runtime/client/outcome.ts"
import { apiVersionOf, type KubeObject } from "#runtime/resource.ts"
import type { Plan, Snapshot } from "./plan.ts"
import { nodeImages } from "./resources.ts"
import { sealedFor } from "./seal.ts"
import type { World } from "./world.ts"

export type Done = { readonly lookAgainAt?: Instant | undefined }

const jobNames = namesOf("ImagePullJob")
const soonMs = 1000
/** What was refused may be allowed later: a role that is being changed, a webhook that is down. */
const refusedMs = 15_000

/** Writes the NodeImage of one node, conditional on what was read of it just before. */
export async function apply(world: World, seen: Snapshot, plan: Plan): Promise<Done> {
  const { client } = world
  const { node, facts, nodeImage, now } = seen
  if (plan.do === "nothing") return {}
  if (plan.do === "edit") return edit(world, seen, plan)
  const write =
    plan.do === "create"
      ? client.create(nodeImages, emptyFor(node, facts.uid))
      : client.delete(nodeImages, { name: node }, { uid: nodeImage!.uid })
  const outcome = await outcomeOf<unknown>(write)
  if (outcome.is === "Written") return {}
  return { lookAgainAt: now + (outcome.is === "Outdated" ? soonMs : refusedMs) }
}

const emptyFor = (node: string, uid: string): KubeObject & Pick<NodeImage, "spec"> => ({
  apiVersion: apiVersionOf(nodeImages),
  kind: nodeImages.kind,
  // It goes with its node.
  metadata: { name: node, ownerReferences: [{ apiVersion: "v1", kind: "Node", name: node, uid }] },
  spec: { images: {} },
})

/**
 * The agent writes the status of the same object, so our copy is often behind: it is read first. What is written is
 * decided from what was read, and doing it twice changes nothing.
 */
async function edit({ client, pulls }: World, seen: Snapshot, plan: Plan): Promise<Done> {
  const { node, facts, nodeImage, isWanted, now } = seen
  const before = await read(client, node)
  if (before?.metadata.uid !== nodeImage!.uid) return { lookAgainAt: now + soonMs }
  const all = plan.jobs.map(job => additionFor(pulls, job, before, facts.uid))
  const additions = all.flatMap(addition => addition ?? [])
  const sandboxConfigOf = (uid: string) => pulls.detailsOf(pulls.board.jobOf(uid)?.key ?? "")?.spec.sandboxConfig
  const { spec, left } = edited(before, { additions, isWanted, expired: plan.expired ?? [], sandboxConfigOf, now })
  for (const { owner } of left)
    pulls.board.fail(
      `${owner.namespace}/${owner.name}`,
      node,
      { reason: "NodeFull", message: "256 images wait there" },
      now,
    )
  if (isSame(spec, before.spec)) return {}
  const outcome = await outcomeOf(client.replace(nodeImages, { ...before, spec }))
  if (outcome.is === "Written") return {}
  if (outcome.is !== "Refused") return { lookAgainAt: now + soonMs }
  const { said } = outcome.error
  for (const { owner } of additions) {
    const job = `${owner.namespace}/${owner.name}`
    if (isFailure(outcome.error, "Invalid")) pulls.board.fail(job, node, { reason: "Refused", message: said }, now)
    else pulls.board.refuse(job, node, said, now)
  }
  return { lookAgainAt: now + refusedMs }
}

async function read(client: World["client"], name: string): Promise<NodeImage | undefined> {
  try {
    return await client.get<NodeImage>(nodeImages, { name })
  } catch (error) {
    if (isFailure(error, "NotFound")) return undefined
    throw error
  }
}

/** Undefined for a job that has ended meanwhile, or whose credentials are not known yet. */
function additionFor(
  pulls: World["pulls"],
  { uid }: Pick<PullJob, "uid">,
  nodeImage: NodeImage,
  nodeUid: string,
): Addition | undefined {
  const job = pulls.board.jobOf(uid)
  const details = job && pulls.detailsOf(job.key)
  if (!details) return undefined
  const { credentials, spec, name } = details
  if (job.hasSecrets && credentials.is !== "Found") return undefined
  const purpose = { nodeUid, jobUid: uid, host: job.image.host }
  return {
    image: { name: job.image.name, tag: job.image.tag },
    owner: {
      apiVersion: apiVersionOf(jobNames),
      kind: jobNames.kind,
      namespace: job.namespace,
      name,
      uid,
    },
    policy: spec,
    sealed: sealedFor(credentials, nodeImage.status?.publicKey ?? "", purpose),
  }
}
