import type { NodeImage } from "#api/v1alpha1/nodeimage/index.ts"
import { reasons } from "#api/v1alpha1/nodeimage/reasons.ts"
import type { Explained, Explanation } from "../explained.ts"
import { explanationOf } from "../plain.ts"
import { type Asked, answerOf, askedOf, hasFailed, isAtRisk, isThere, nodeImageList, someOf } from "../pulls.ts"

const shownMost = 10

/** A NodeImage is explained by each image that is not there yet, or may soon be gone, with the jobs that want it. */
export const explained: Explained = {
  reading: () => ({ own: nodeImageList }),
  explainer: () => async object => explain(object as NodeImage),
}

function explain(nodeImage: NodeImage): Explanation {
  const found = explanationOf(nodeImage, reasons)
  const asked = askedOf(nodeImage)
  const missing = asked.filter(each => !isThere(each))
  const order = [...missing.filter(hasFailed), ...missing.filter(each => !hasFailed(each)), ...asked.filter(isAtRisk)]
  const details = order.map(sentence)
  const isAnswered = found.reason !== "NotSeenYet"
  const message = `the agent of ${nodeImage.metadata.name} has not answered yet: is aim agent running there?`
  return { ...found, ...(!isAnswered && { message }), details: someOf(details, shownMost, "image") }
}

const sentence = (asked: Asked) => `${asked.image}${jobsOf(asked)}: ${answerOf(asked)}.`

function jobsOf({ owners }: Asked): string {
  const names = owners.map(({ namespace, name }) => `${namespace}/${name}`)
  return names.length > 0 ? ` (for ${names.join(", ")})` : ""
}
