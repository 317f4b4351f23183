import type { Instant } from "#lib/instant.ts"

/**
 * How a hub reaches a cluster: five verbs, the fewest that a client, a ManifestWork and a simulation can all give. Types
 * only; `src/hub` implements them. Nothing desired is read back from a cluster: what is wanted is always given, and an
 * answer is compared with it. Every answer is bounded and read once, where it arrives.
 */
export type FleetTransport = {
  /**
   * Makes a cluster have what a delivery lists. Saying it again changes nothing. What an earlier content of the same
   * bundle listed is not taken away by leaving it out: list an object until the bundle is removed. The order of the list
   * is the order of the writes, and is no gate: a later object may arrive although an earlier one was refused.
   */
  apply(cluster: string, delivery: Delivery, options?: ApplyOptions): Promise<Answer<Applied>>
  /** What the cluster shows of a delivery. Costs the hub no request while the cluster is subscribed to. */
  observe(cluster: string, delivery: Delivery): Promise<Answer<Observation>>
  /** Takes the bundle away: its `Removed` objects are deleted, and `Kept` ones stay as they are. */
  remove(cluster: string, delivery: Delivery): Promise<Answer<Removal>>
  /** Whether the cluster can be reached, and what it says of itself. One cheap request, or none. */
  probe(cluster: string): Promise<Answer<Reach>>
  /** The cluster is worked on until the returned function is called: `onChange` is called when an answer may differ. */
  subscribe(cluster: string, onChange: () => void): () => void
}

/** A failure on the way is a value too: it changes no state, and the same call may be made again. */
export type Answer<T> = { ok: true; value: T } | { ok: false; trouble: Trouble }

export type Trouble = {
  is: TroubleKind
  /** For people, bounded; holds no credential. */
  message: string
  retryAfterMs?: number
}

export type TroubleKind =
  /** Not reached, or not answered: nothing was applied. */
  | "Unreachable"
  /** A write was sent and its answer is missing: it may arrive later. Apply with another `fence` before you conclude. */
  | "UnknownOutcome"
  | "Throttled"
  /** What was seen before has changed: look again. */
  | "Conflict"
  /** The hub's credential has not the right. The message names it. */
  | "Forbidden"
  /** No such cluster is known, or what leads to it is missing. */
  | "UnknownCluster"
  /** The kubeconfig, the address or the certificate may not be used. */
  | "BadCredential"
  /** The kinds of the transport are not installed on the hub. */
  | "NotInstalled"
  /** The delivery cannot be sent: it is too large, or an object is of a kind that is not delivered. */
  | "Undeliverable"
  /** This process may not write: it does not lead. */
  | "WritesRefused"

/** What is sent to one cluster in one piece. The same value is given to apply, observe and remove. */
export type Delivery = {
  /** Names what is sent: one for each run and purpose. A DNS label of at most 50 characters. */
  bundle: string
  /** Echoed by every object, as the annotation `autoimagemanager.io/run`. At most 63 characters, as a label's value. */
  run: string
  /**
   * A value that a process chooses when it begins to lead, and no process had before. An apply with another fence makes
   * every write fail that was sent before it.
   */
  fence: string
  objects: readonly DeliveredObject[]
}

export type Manifest = {
  apiVersion: string
  kind: string
  metadata: {
    name: string
    namespace?: string
    labels?: Record<string, string>
    annotations?: Record<string, string>
  }
} & Record<string, unknown>

export type DeliveredObject = {
  manifest: Manifest
  /** What happens to it when the bundle is removed. */
  lifetime: "Kept" | "Removed"
  /** When it counts as settled. */
  judge: Judge
  /** What else to report of it, by a name of letters: at most 16 fields, each a scalar. */
  fields?: Readonly<Record<string, FieldPath>>
}

/** Keys from the top of the object; an index of a list is a number. */
export type FieldPath = readonly (string | number)[]

export type Judge =
  /** It is there as it was written, without a status: a Namespace, a ConfigMap, a Lease. */
  | { by: "Presence" }
  /**
   * One read shows the run, these fields with these values, `status.observedGeneration` = `metadata.generation`, and
   * Ready for that generation and no Stalled.
   */
  | { by: "Ready"; expects: readonly Expectation[] }

export type Expectation = { path: FieldPath; value: string }

export type ApplyOptions = {
  /**
   * `version` of the observation that this was decided from: an object that has changed since is not written
   * (`Conflict`), and none after it.
   */
  seen?: string
}

export type Applied = {
  /** Of what was written, for `seen` of the next apply. */
  version: string
  /** Objects that the cluster refused at once; only a transport that writes by itself knows them here. */
  refused: readonly { index: number; seen: Refused | Contested }[]
}

export type Removal =
  /** Nothing of the bundle is there, or only what is kept. */
  | { is: "Gone" }
  /** Asked for, and not finished: the cluster has not answered, or an object waits for its finalizers. */
  | { is: "Leaving"; message: string }

export type Observation = {
  /** When the hub looked, by its own clock. */
  at: Instant
  /** Undefined: the bundle is not there. */
  version?: string
  bundle: "Absent" | "Present" | "Leaving"
  /** In the order of the delivery, one for each object. */
  objects: readonly ObjectSeen[]
}

export type ObjectSeen = Unknown | Absent | Refused | Contested | Present

/** Nothing is known yet about what was last applied: the answer is missing, or is about earlier content. */
export type Unknown = { is: "Unknown"; message: string }
export type Absent = { is: "Absent" }
/** The cluster does not take it: admission, rights or its schema. */
export type Refused = { is: "Refused"; reason: RefusalReason; message: string }
export type RefusalReason = "AdmissionDenied" | "Forbidden" | "Invalid" | "KindMissing" | "NamespaceMissing" | "Failed"
/** Another writer holds a field of ours, or rewrites what was sent. */
export type Contested = { is: "Contested"; message: string }
/** It is there, as one read showed it. */
export type Present = { is: "Present"; verdict: Verdict; fields: Readonly<Record<string, Scalar>> }

export type Scalar = string | number | boolean

export type Verdict =
  | { is: "Settled" }
  /** It has what was sent, and works on it. */
  | { is: "Waiting"; reason: string; message: string }
  /** It says itself that it cannot go on. */
  | { is: "Stalled"; reason: string; message: string }
  /** It has not what was sent: another run, other images; an edit on the cluster, or an apply that is on its way. */
  | { is: "Differs"; message: string }
  /** It is being deleted. */
  | { is: "Leaving" }

export type Reach = {
  isReachable: boolean
  /** The hub's clock at the last contact, as far as it is known; while it is reachable, about now. */
  lastContact?: Instant
  /** Why it is not reachable, in words. */
  message?: string
  /** Kubernetes' version there. */
  version?: string
  /** The cluster's clock minus the hub's, in whole seconds. Only for a warning: no decision compares clocks. */
  skewSeconds?: number
  /** Something about the credential that a person should know: it expires soon. */
  warning?: string
}

/** Bounds on everything that a cluster says. Longer texts are cut, further ones left out. */
export const transportBounds = {
  reason: 128,
  message: 512,
  fieldText: 512,
  fields: 16,
  objects: 136, // 16 upgrades of 8 manifests, and what a run needs beside them
  manifestsBytes: 400 * 1024,
} as const
