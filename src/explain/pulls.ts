import { namesOf } from "#api/names.ts"
import type { NodeImage } from "#api/v1alpha1/nodeimage/index.ts"
import { joinImage } from "#core/pulls/image-name.ts"
import { fetchedOnNode } from "#core/pulls/transfer.ts"
import { counted } from "#lib/text.ts"
import { resourceOf } from "#runtime/resource.ts"
import type { ListOf } from "./reading.ts"
import { metadata } from "./shapes.ts"

/** NodeImages without the sealed credentials: a dump holds none, not even those that only an agent can open. */
export const nodeImageList: ListOf = {
  resource: resourceOf(namesOf("NodeImage")),
  shape: {
    metadata,
    spec: {
      images: {
        "*": {
          tags: [
            { tag: "value", version: "value", ownerReferences: [{ namespace: "value", name: "value", uid: "value" }] },
          ],
        },
      },
    },
    status: "all",
  },
}

type Owner = { namespace: string; name: string; uid: string }
type Told = NonNullable<NodeImage["status"]>["imageStatuses"][string]["tags"][number]

/** An image that a node is asked for, and what its agent has answered. */
export type Asked = { image: string; owners: readonly Owner[]; told: Told | undefined }

export const askedOf = ({ spec, status }: NodeImage): Asked[] =>
  Object.entries(spec?.images ?? {}).flatMap(([name, { tags = [] }]) =>
    tags.map(({ tag, version = 0, ownerReferences = [] }) => ({
      image: joinImage({ name, tag }),
      owners: ownerReferences,
      // An answer to an earlier version says nothing of this one.
      told: status?.imageStatuses?.[name]?.tags.find(each => each.tag === tag && each.version >= version),
    })),
  )

export const isThere = ({ told }: Asked) => told?.phase === "Succeeded"
/** It is there, and the kubelet may soon remove it. */
export const isAtRisk = (asked: Asked) => isThere(asked) && asked.told?.reason === "MayBeCollected"
export const hasFailed = ({ told }: Asked) => told?.phase === "Failed"

/** The answer of an agent as the end of a sentence. */
export function answerOf({ told }: Asked): string {
  if (!told) return "the agent has not answered yet"
  const { phase, reason = "", message = "", attempts } = told
  const why = [reason, message].filter(Boolean).join(": ")
  if (phase === "Pulling") return `being pulled${progressOf(told)}`
  if (phase === "Waiting") return why || "waits for its turn"
  if (phase === "Failed") return `failed after ${counted(attempts, "attempt")}${why && `: ${why}`}`
  return `is there${why && `; ${why}`}`
}

function progressOf({ progress, transfer }: Told): string {
  const percent = progress === undefined ? "" : ` (${progress} %)`
  return transfer ? `, ${fetchedOnNode(transfer)}${percent}` : ""
}

/** The first few, and how many are left. */
export function someOf(sentences: readonly string[], most: number, noun: string): string[] {
  const more = sentences.length - most
  return more > 0 ? [...sentences.slice(0, most), `And ${counted(more, `more ${noun}`)}.`] : [...sentences]
}
