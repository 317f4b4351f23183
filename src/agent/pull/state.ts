import type { ImageTag, NodeImage, Reason, TagStatus } from "#api/v1alpha1/nodeimage/index.ts"
import { classify } from "#core/image/pull-failure.ts"
import { joinImage } from "#core/pulls/image-name.ts"
import { formatInstant, type Instant } from "#lib/instant.ts"
import { clip, withoutControls } from "#lib/text.ts"
import type { SandboxConfig } from "#runtime/cri/index.ts"

/** One image that the node is asked for. */
export type Wanted = {
  readonly id: string
  readonly name: string
  readonly reference: string
  readonly tag: ImageTag
  readonly sandboxConfig?: SandboxConfig | undefined
}

/** How it stands with it, as the status reports it, and when it may be tried again. */
export type TagState = TagStatus & { readonly retryAt?: Instant | undefined }

export const idOf = (name: string, tag: string) => `${name} ${tag}`

export const wantedBy = ({ spec }: NodeImage): Wanted[] =>
  Object.entries(spec.images).flatMap(([name, { tags, sandboxConfig }]) =>
    tags.map(tag => ({
      id: idOf(name, tag.tag),
      name,
      reference: joinImage({ name, tag: tag.tag }),
      tag,
      sandboxConfig,
    })),
  )

export const freshState = ({ tag: { tag, version } }: Pick<Wanted, "tag">): TagState => ({
  tag,
  version,
  phase: "Waiting",
  attempts: 0,
})

export const isEnded = ({ phase }: Pick<TagState, "phase">) => phase === "Succeeded" || phase === "Failed"

/** The runtime shows the image. */
export type Present = {
  readonly is: "Present"
  readonly imageID: string
  readonly digest?: string
  /** The size of the image, where it was pulled and not there before. */
  readonly pulledBytes?: number
  /** Why the kubelet may soon remove it. */
  readonly risk?: string
}

/** How one attempt ended. */
export type Attempt =
  | Present
  | { readonly is: "Failed"; readonly reason: Reason; readonly message: string }
  /** The runtime did not answer: nothing is known of the image, and the attempt does not count. */
  | { readonly is: "Unknown"; readonly message: string }

/** The runtime's message about a failed pull, in one word. */
export const failureOf = (said: string): Reason => classify("ErrImagePull", said) ?? "UnknownFailure"

/** The wait after so many failed attempts. */
const backoffMs = (attempts: number) => Math.min(1000 * 2 ** Math.max(0, attempts - 1), 30_000)
const unknownMs = 5000

/** The state after an attempt. */
export function afterAttempt(before: TagState, wanted: Wanted, attempt: Attempt, now: Instant): TagState {
  const { progress: _, transfer: __, reason: ___, message: ____, retryAt: _____, ...rest } = before
  const said = (message: string) => clip(withoutControls(message, " "), 256)
  if (attempt.is === "Present")
    return {
      ...rest,
      phase: "Succeeded",
      attempts: before.attempts + 1,
      completionTime: formatInstant(now),
      imageID: attempt.imageID,
      ...(attempt.digest !== undefined && { digest: attempt.digest }),
      ...(attempt.risk && { reason: "MayBeCollected", message: said(attempt.risk) }),
    }
  if (attempt.is === "Unknown")
    return { ...rest, phase: "Waiting", reason: "BackingOff", message: said(attempt.message), retryAt: now + unknownMs }
  const attempts = before.attempts + 1
  const { backoffLimit, activeDeadlineSeconds } = wanted.tag.pullPolicy
  const startedAt = before.startTime === undefined ? now : Date.parse(before.startTime)
  const isTooLate = activeDeadlineSeconds !== undefined && now >= startedAt + activeDeadlineSeconds * 1000
  const failure = { reason: attempt.reason, message: said(attempt.message), attempts }
  if (attempts > backoffLimit || isTooLate)
    return { ...rest, ...failure, phase: "Failed", completionTime: formatInstant(now) }
  return { ...rest, ...failure, phase: "Waiting", retryAt: now + backoffMs(attempts) }
}
