/**
 * The reasons of a ContainerRecreateRequest for everything it does, waits for or refuses. The same word is used in
 * conditions, events, metric labels, log lines and CLI; the documentation explains it with the sentence.
 */
export const reasons = {
  // It is carried out.
  Queued: "An earlier request for the same pod is not complete yet; this one joins or follows.",
  Draining: "The pod is set to not ready, and unreadyGracePeriodSeconds are running.",
  WaitingForAgent: "The request is handed over to the agent of the pod's node, which has not answered yet.",
  Recreating: "Containers are being stopped, or have been and are not ready again yet.",
  WaitingForLimit: "The node stops no more containers in this minute (--stops-per-minute).",
  WaitingForBackOff: "The kubelet waits before it starts a container again; the message says until when.",

  // It is complete.
  Succeeded: "Every container was recreated and is ready.",
  NothingToDo: "Nothing needs a person.",
  StopFailed: "The runtime could not stop a container.",
  ContainerEnded: "A container ended with exit code 0, and its restartPolicy OnFailure does not start it again.",
  DeadlineExceeded: "activeDeadlineSeconds have passed; unfinished containers are Failed.",
  AgentMissing: "No agent has answered within 60 s: `aim agent` does not run on the node of the pod.",
  PodGone: "The pod was deleted or replaced before the request was complete.",

  // The request cannot be carried out.
  PodNotFound: "The namespace has no pod of this name.",
  PodTerminating: "The pod is being deleted.",
  PodEnded: "The pod has ended: its containers are not started again.",
  PodNotScheduled: "The pod is not on a node yet, so there is nothing to recreate.",
  StaticPod: "The pod is static: the kubelet reads it from a file, and requests for it are refused.",
  WindowsPod: "The pod is for Windows, where no agent runs.",
  ContainerNotFound: "The pod has no container of this name.",
  InitContainer: "An init container cannot be recreated by itself.",
  ContainerNotStarted: "The container has not been started yet, so there is nothing to recreate.",
  RestartPolicyNever: "The container has restartPolicy Never: once stopped, it would not be started again.",
  Forbidden: "The controller may not set the pod to not ready; run `aim grant`.",
  Refused: "The server refused to set the pod to not ready.",
} as const satisfies Record<string, string>

export type Reason = keyof typeof reasons

/** Why a request is refused as a whole, at the first look. Its spec cannot be changed, so another one must be made. */
export type Refusal = Extract<
  Reason,
  | "PodNotFound"
  | "PodTerminating"
  | "PodEnded"
  | "PodNotScheduled"
  | "StaticPod"
  | "WindowsPod"
  | "ContainerNotFound"
  | "InitContainer"
  | "ContainerNotStarted"
  | "RestartPolicyNever"
>

/** A person must act. */
export const stuck: Reason[] = [
  "StopFailed",
  "ContainerEnded",
  "DeadlineExceeded",
  "AgentMissing",
  "PodGone",
  "PodNotFound",
  "PodTerminating",
  "PodEnded",
  "PodNotScheduled",
  "StaticPod",
  "WindowsPod",
  "ContainerNotFound",
  "InitContainer",
  "ContainerNotStarted",
  "RestartPolicyNever",
  "Forbidden",
  "Refused",
]

/** The conditions of a ContainerRecreateRequest, what each means when True, and the reasons it may give. */
export const conditions = {
  Ready: {
    means: "Every container was recreated and is ready.",
    reasons: [
      "Succeeded",
      "Queued",
      "Draining",
      "WaitingForAgent",
      "Recreating",
      "WaitingForLimit",
      "WaitingForBackOff",
      ...stuck,
    ],
  },
  Stalled: {
    means: "The request failed or cannot go on, and needs a person.",
    reasons: ["NothingToDo", ...stuck],
  },
} as const satisfies Record<string, { means: string; reasons: Reason[] }>

export type ConditionType = keyof typeof conditions
