/**
 * The reasons of an AlternateImageSource for everything it does, waits for or refuses. The same word is used in
 * conditions, events, metric labels, log lines and CLI; the documentation explains it with the sentence.
 */
export const reasons = {
  // The state as a whole.
  Watching: "Every image is pulled where its workload says; nothing has to be done.",
  Switched: "Some containers are pulled from elsewhere: their pods were sent there, or their workload was changed.",
  Repairing: "A pull failed, and another repository is being chosen or tried.",
  Observing: "Seen for the first time; not judged yet.",

  // Why a container cannot pull its image: the classes switches are recorded under.
  Unreachable: "The registry cannot be reached, or answers with an error of its own (5xx).",
  TLS: "The registry's certificate cannot be trusted.",
  RateLimited: "The registry refuses more pulls for now (429); switched at once.",
  NotFound: "The registry does not have the image; switched only to one that has it.",
  Denied: "The registry refuses the credentials (401, 403); switched only with onAuthError: Switch.",
  SignatureRejected: "A signature check failed. Never switched: that would get around it.",
  NoPlatform: "The image is not there for the node's architecture; switched only to one that has it.",
  DiskFull: "The node has no room for the image. Another registry would not help.",
  Timeout: "The registry did not answer in time.",
  UnknownFailure:
    "aim does not know the kubelet's message; switched only to a repository that is known to have the image.",

  // Why it is not, or not yet, switched.
  HeldBack: "The node limits how many pulls start per second (registryPullQPS); the kubelet tries again by itself.",
  Confirming: "Waiting until aim has seen the repository fail too, or it has failed for confirmSeconds.",
  CoolingDown: "The container was switched less than cooldownSeconds ago.",
  Probing: "The next repository is being asked whether it has the image.",
  NotFoundAnywhere: "No equivalent repository has this tag or digest: most likely it is misspelt.",
  AllSourcesDown: "No equivalent repository can serve the image now; they are asked again at growing intervals.",
  DigestDiffers: "The other repository has other bits under the same tag, and requireSameDigest forbids them.",
  DigestUnknown:
    "requireSameDigest is Always, and no pod of the namespace has run the image: there is nothing to compare.",
  PartOfPodsFails: "apply is Template, and fewer pods fail than templateShare: only these pods are repaired.",
  ManagedByGitOps:
    "apply is Template, and GitOps owns the workload: its pods are repaired, its template is not touched.",
  OwnedByAnother: "apply is Template, and the workload belongs to another object: its pods are repaired instead.",
  UpdatedInPlace:
    "An update in place works on the workload: pods that it has changed are left to it, and so is the template. The template of a workload that a Canary holds is left alone too. Also the template of a workload with InPlaceOnly that its owner has stopped: nothing could hold it.",
  SecretMissing:
    "The other repository needs credentials, and the pod lists none for it, or none that aim may read (`aim grant NAMESPACE --pull-secrets NAME`).",
  Forbidden: "aim has no grant to change pods of this namespace; run `aim grant NAMESPACE`.",
  Refused: "The API server or an admission policy refused the change.",
  ClaimedByAnother: "An older AlternateImageSource of the namespace already looks after this container.",
  TooMany:
    "The namespace has too many AlternateImageSources, or too many targets in them: only the oldest are acted on, this one is not.",
  TargetNotFound: "A target that the spec names does not exist in the namespace.",
  ListFailed: "aim may not list workloads or pods, so nothing is concluded about them.",

  // The outcome.
  CrashLoop: "Containers that were switched to another repository crash: it may have other bits.",
  SwitchedBack:
    "The first repository serves the image again: new pods pull from it, and repaired ones run from elsewhere until they are re-created.",
  NothingToDo: "Nothing needs a person.",

  // The spec cannot be carried out.
  NoAlternative: "A set of repositories names only one, or none that may be used instead: it can never help.",
} as const satisfies Record<string, string>

export type Reason = keyof typeof reasons

/** Why a pull fails. */
export type PullFailure = Extract<
  Reason,
  | "Unreachable"
  | "TLS"
  | "RateLimited"
  | "NotFound"
  | "Denied"
  | "SignatureRejected"
  | "NoPlatform"
  | "DiskFull"
  | "Timeout"
  | "UnknownFailure"
>

const waiting: Reason[] = [
  "Confirming",
  "CoolingDown",
  "Probing",
  "PartOfPodsFails",
  "ManagedByGitOps",
  "OwnedByAnother",
  "UpdatedInPlace",
]
/** Ends by itself when the cause is gone. */
const patient: Reason[] = ["AllSourcesDown", "TargetNotFound"]
/** A person must act. */
export const stuck: Reason[] = [
  "NotFoundAnywhere",
  "DigestDiffers",
  "DigestUnknown",
  "SecretMissing",
  "Forbidden",
  "Refused",
  "ClaimedByAnother",
  "TooMany",
  "ListFailed",
  "Denied",
  "SignatureRejected",
  "DiskFull",
  "NoAlternative",
]

/** The conditions of an AlternateImageSource, what each means when True, and the reasons it may give. */
export const conditions = {
  Ready: {
    means: "Every container it looks after can be pulled, from where its workload says or from elsewhere.",
    reasons: [
      "Watching",
      "Switched",
      "SwitchedBack",
      "CrashLoop",
      "Repairing",
      "Observing",
      ...waiting,
      ...patient,
      ...stuck,
    ],
  },
  Switched: {
    means: "Some containers are pulled from elsewhere: their pods were sent there, or their workload was changed.",
    reasons: ["Watching", "Switched", "SwitchedBack", "Observing"],
  },
  AllSourcesDown: {
    means: "Some container cannot be pulled from any of its repositories.",
    reasons: ["Watching", "AllSourcesDown", "NotFoundAnywhere", "Observing"],
  },
  Stalled: {
    means: "A failure needs a person.",
    reasons: ["NothingToDo", "Observing", ...stuck],
  },
} as const satisfies Record<string, { means: string; reasons: Reason[] }>

export type ConditionType = keyof typeof conditions
