import { namesOf } from "#api/names.ts"
import type { FailedNode, ImagePullJob } from "#api/v1alpha1/imagepulljob/index.ts"
import { reasons } from "#api/v1alpha1/imagepulljob/reasons.ts"
import type { NodeImage } from "#api/v1alpha1/nodeimage/index.ts"
import { isOver } from "#controllers/imagepulljob/observe.ts"
import { nameSome } from "#lib/text.ts"
import { resourceOf } from "#runtime/resource.ts"
import type { Explained } from "../explained.ts"
import { type Inventory, kindOf } from "../inventory.ts"
import { explanationOf, ownList } from "../plain.ts"
import { answerOf, askedOf, hasFailed, isThere, nodeImageList, someOf } from "../pulls.ts"

const nodesMost = 5

const jobs = resourceOf(namesOf("ImagePullJob"))

/** A job is explained by its status, and by what the agents of its nodes answer while it lasts. */
export const explained: Explained = {
  reading: ({ namespace }) => ({
    own: ownList(jobs, namespace),
    rest: seen => ([...seen.of<ImagePullJob>(kindOf(jobs)).values()].every(isOver) ? [] : [nodeImageList]),
  }),
  explainer({ inventory }) {
    return async object => {
      const job = object as ImagePullJob
      const details = [...failuresOf(job), ...(isOver(job) ? [] : atWork(job, inventory))]
      return { ...explanationOf(object, reasons), details }
    }
  },
}

/** Failed nodes by their reason: what it means, and the words of one of them. */
function failuresOf({ status }: ImagePullJob): string[] {
  const groups = Map.groupBy(status?.failedNodes ?? [], ({ reason }) => reason)
  return [...groups].map(
    ([reason, nodes]) => `${reason} on ${namesIn(nodes)}. ${reasons[reason] ?? ""}${wordsOf(nodes[0]!)}`,
  )
}

const namesIn = (nodes: readonly FailedNode[]) =>
  nameSome(
    nodes.slice(0, nodesMost).map(({ name }) => name),
    nodes.length,
  )

const wordsOf = ({ name, message }: FailedNode) => (message ? ` From ${name}: ${message}` : "")

/** Nodes that were asked for the image and have neither brought it nor given up. */
function atWork({ metadata }: ImagePullJob, inventory: Inventory): string[] {
  const missing = inventory.whyMissing(kindOf(nodeImageList.resource))
  if (missing !== undefined) return [`NodeImages could not be read (${missing}), so the nodes at work are not listed.`]
  const sentences: string[] = []
  for (const nodeImage of inventory.of<NodeImage>(kindOf(nodeImageList.resource)).values())
    for (const asked of askedOf(nodeImage))
      if (!isThere(asked) && !hasFailed(asked) && asked.owners.some(({ uid }) => uid === metadata.uid))
        sentences.push(`${nodeImage.metadata.name}: ${answerOf(asked)}.`)
  return someOf(sentences, nodesMost, "node")
}
