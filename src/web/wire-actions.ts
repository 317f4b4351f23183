/** The part of wire.ts about single objects: why they are as they are, and what is done to them. */

/** An object of a kind that the dashboard shows; `namespace` is "" for cluster-scoped kinds. */
export type ObjectId = { kind: string; namespace: string; name: string }

/** Of any object: also of the kind that a ServiceImage stamps, by its kind, such as `Dicom`. */
export type WhyRequest = ObjectId

export type Why = {
  title: string
  reason: string
  sentences: string[]
  since?: number
  serviceImage?: string
  tier?: { name: string; priority: number; step?: number }
  lastDecision?: { at: number; by: string; operation: string; reason: string; from: string; to: string }
  /** The command that says the same. */
  command: string
  /** What could not be read, and is missing in the sentences. */
  missing: string[]
}

export type ActionName = "approve" | "pause" | "resume" | "rollback" | "set-image"

/** A button. A disabled one says why. */
export type ActionState = { action: ActionName; isEnabled: boolean; why: string }

export type ActionRequest = ObjectId & {
  action: ActionName
  /** approve: the tiers, or none for those that wait now. */
  tiers?: string[]
  /** set-image: `IMAGE`, `TIER=IMAGE`, `TIER=`, as `aim set-image` takes them. */
  settings?: string[]
  /** set-image: may end an operation that is in progress. */
  supersede?: boolean
}

/** What the command would say, what the planner expects, and whether the server would take it. Nothing was written. */
export type Preview = {
  /** False: the command would refuse, and `lines` say why. */
  isPossible: boolean
  /** The CLI's lines; the second list is what it says comes next. */
  lines: string[]
  next: string[]
  /** What the planner would do after it: the stages of `aim plan`. Empty where the plan does not change. */
  plan: string[]
  /** False where the object is as wanted already. */
  isChange: boolean
  dryRun: { isAccepted: boolean; message: string }
  command: string
  /** Which field of the request is at fault, where one is. */
  field?: "tiers" | "settings" | "supersede"
  /** Stands for what was decided. Sent back with `act`: a decision that reads differently by then is shown, not done. */
  decision: string
}

export type ActRequest = ActionRequest & { decision: string }

export type Acted =
  | { isDone: true; lines: string[]; next: string[]; command: string }
  /** It would read differently now: `moved` says what changed since, and nothing was written. */
  | { isDone: false; moved: string[]; preview: Preview }

/** `done` says what was and what was not done, where that is a question. */
export type ErrorAnswer = {
  error:
    | "BadRequest"
    | "NoSession"
    | "KeyUsed"
    | "KeyExpired"
    | "TokenRefused"
    | "NeedsToken"
    | "NeedsTls"
    | "ReadOnly"
    | "Forbidden"
    | "NotFound"
    | "Refused"
    | "Conflict"
    | "TooManyRequests"
    | "Timeout"
    | "TooLarge"
    | "WrongHost"
    | "WrongOrigin"
    | "Unreachable"
    | "Other"
  message: string
  done?: string
  meant?: string
  field?: string
}
