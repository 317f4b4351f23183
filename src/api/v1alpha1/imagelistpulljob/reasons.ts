/**
 * The reasons of an ImageListPullJob. The same word is used in conditions, events, metric labels, log lines and CLI; the
 * documentation explains it with the sentence.
 */
export const reasons = {
  Pulling: "Some of its ImagePullJobs are at work.",
  Present:
    "Every selected node has every image; with `completionPolicy.type: Never`, nodes that join later get them too.",
  Completed: "Every selected node has every image. The job has ended.",
  ImagesFailed: "Some images could not be brought to every node; their ImagePullJobs say why.",
  ImagesStalled: "Some of its ImagePullJobs wait for a person; the message has the reason of one of them.",
  NameTaken: "An ImagePullJob of the name that is needed exists and belongs to something else.",
  Refused: "The API server or an admission policy refused an ImagePullJob.",
  Listing: "ImagePullJobs are being read; nothing is concluded yet.",
  NothingToDo: "Nothing needs a person.",
} as const satisfies Record<string, string>

export type Reason = keyof typeof reasons

/** The conditions of an ImageListPullJob, what each means when True, and the reasons it may give. */
export const conditions = {
  Ready: {
    means: "Every selected node has every image.",
    reasons: ["Completed", "Present", "Pulling", "Listing", "ImagesFailed", "ImagesStalled", "NameTaken", "Refused"],
  },
  Stalled: {
    means: "A failure needs a person.",
    reasons: ["NothingToDo", "ImagesFailed", "ImagesStalled", "NameTaken", "Refused"],
  },
} as const satisfies Record<string, { means: string; reasons: readonly Reason[] }>

export type ConditionType = keyof typeof conditions
