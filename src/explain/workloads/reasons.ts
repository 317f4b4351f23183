import type { Reason } from "#controllers/in-place/plan.ts"

/** What each reason of an update in place means, and what ends it. */
export const updateReasons: Readonly<Record<Reason | "Held" | "Released", string>> = {
  Held: "The server has held the change in the write that made it; no pod has been touched.",
  Updating: "Pods are being changed, within every budget.",
  Pulling: "The agents of the nodes pull the image first; a pod is not touched before its node has it.",
  ImageUnavailable: "An agent cannot pull the image, so no pod of its node is touched. The agents go on trying.",
  BudgetSpent: "No further pod may be down now; it goes on when pods are ready again or the budget allows it.",
  Partitioned: "in-place-partition keeps the rest on the old image; a smaller one, such as 0, lets it go on.",
  Forbidden: "aim may not write what the update needs; run `aim grant NAMESPACE`. It is tried again then.",
  Refused:
    "The server, an admission policy or a webhook refuses a write, which is tried again at growing intervals. Change what refuses it, or set another image.",
  PodNotReady: "Every image is updated, and its own controller waits for this pod to be ready or gone.",
  NodeNotReady:
    "A node is not ready, and reports nothing of its pods; it goes on when the node is back or its pods are gone.",
  UpdateFailed: "A pod failed, and no further pod is touched. Set another image, or the one before.",
  Fencing: "All pods are done; it is released when its own controller has seen that.",
  Completed: "The workload is released.",
  RolledBack: "The update failed, and all pods and the template went back.",
  NotInPlace: "A running pod cannot get this change.",
  NoBudget: "No pod may be down, and in place there is no pod to make first.",
  FellBackToRollingUpdate: "Its own controller makes other pods.",
  OptedOut: "Its owner does not ask for updates in place any more.",
  InvalidAnnotation: "An annotation cannot be read; no pod is touched until it can.",
  Released: "It was given back by aim release.",
}
