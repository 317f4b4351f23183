import { pullFailureReasons } from "../pull-fields.ts"

/**
 * The reasons of a NodeImage. The same word is used in conditions, events, metric labels, log lines and CLI; the
 * documentation explains it with the sentence.
 */
export const reasons = {
  // The state as a whole.
  Present: "Every image that is wanted on the node is there.",
  Pulling: "Some images are being pulled, or wait for their turn on the node.",
  PullFailed: "Some images could not be pulled; each says why.",
  NothingToDo: "Nothing needs a person.",

  // Why one image is not there yet.
  WaitingForTurn: "The node pulls as many images as it may at once (`--pulls-per-node`).",
  BackingOff: "An attempt failed, and the next one waits; the message says until when.",
  Sealed: "The credentials were sealed for an agent that has ended; they are being sealed again.",
  ...pullFailureReasons,

  // What may become of an image that is there.
  MayBeCollected:
    "The image is there, no container used it when it was proven, and the disk was so full that the kubelet may soon remove it.",
} as const satisfies Record<string, string>

export type Reason = keyof typeof reasons

/** The conditions of a NodeImage, what each means when True, and the reasons it may give. */
export const conditions = {
  Ready: { means: "Every image that is wanted on the node is there.", reasons: ["Present", "Pulling", "PullFailed"] },
  Stalled: { means: "A failure needs a person.", reasons: ["NothingToDo", "PullFailed"] },
} as const satisfies Record<string, { means: string; reasons: Reason[] }>

export type ConditionType = keyof typeof conditions
