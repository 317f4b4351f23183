/**
 * What is seen while the ReplicaSet of a tested revision moves from the Deployment of the run to the user's Deployment.
 * Every field is read from objects, so that the next process goes on wherever this one ended.
 */
export type HandOver = {
  /** The Deployment of the run; absent once it was deleted. */
  readonly trial?: {
    readonly isPaused: boolean
    /** Its controller has seen the pause: from here on it makes no ReplicaSet. */
    readonly isPauseSeen: boolean
    /** How many pods it wants. */
    readonly size: number
  }
  /** The ReplicaSet whose pods were tested. */
  readonly set?: { readonly owner: "trial" | "user" | "other"; readonly size: number; readonly ready: number }
  /** An older ReplicaSet of the user's Deployment with the same template, and how many pods it wants. */
  readonly twin?: { readonly size: number }
  readonly user: {
    readonly size: number
    readonly isHeld: boolean
    /** Its template is the tested one: resuming it starts no other rollout. */
    readonly hasTestedTemplate: boolean
    /**
     * Its controller has counted the tested ReplicaSet as its new one, and wants no pod of any other. Seen by the
     * revision, which is above that of every other: the one that came along may be equal, and a Deployment without
     * pods has no other sign.
     */
    readonly hasCounted: boolean
  }
}

export type HandOverStep =
  | { readonly do: "scaleTrial"; readonly size: number }
  | { readonly do: "deleteTwin" | "pauseTrial" | "moveSet" | "deleteTrial" | "resumeUser" }
  | { readonly wait: "PodsNotReady" | "PauseNotSeen" | "NotCounted" }
  | { readonly impossible: "TemplateChanged" | "SetMissing" | "TwinHasPods" | "OwnedByAnother" }
  | "done"

/**
 * The next step of a hand-over. Traffic goes to the tested pods already; what changes is which Deployment owns them.
 *
 * - The run's Deployment is paused, and its controller has seen that, before its ReplicaSet goes: it would make another.
 * - Both sizes are equal when the ReplicaSet moves: a paused Deployment with two of them resizes both in proportion.
 * - A twin goes first: the user's Deployment would take it for its new ReplicaSet and shrink the tested one.
 * - The user's Deployment resumes when its controller has counted what it was given (the fence).
 */
export function nextOfHandOver({ trial, set, twin, user }: HandOver): HandOverStep {
  if (!user.isHeld) return trial ? { do: "deleteTrial" } : "done"
  if (!user.hasTestedTemplate) return { impossible: "TemplateChanged" }
  if (!set) return { impossible: "SetMissing" }
  if (set.owner === "other") return { impossible: "OwnedByAnother" }
  if (set.owner === "user") {
    if (!user.hasCounted) return { wait: "NotCounted" }
    return trial ? { do: "deleteTrial" } : { do: "resumeUser" }
  }
  if (!trial) return { impossible: "SetMissing" }
  if (twin && twin.size > 0) return { impossible: "TwinHasPods" }
  if (twin) return { do: "deleteTwin" }
  if (trial.size !== user.size) return { do: "scaleTrial", size: user.size }
  if (set.size !== user.size || set.ready < user.size) return { wait: "PodsNotReady" }
  if (!trial.isPaused) return { do: "pauseTrial" }
  return trial.isPauseSeen ? { do: "moveSet" } : { wait: "PauseNotSeen" }
}
