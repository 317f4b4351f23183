import { boundMessage } from "#core/cluster-fleet/delivered.ts"
import type { Answer, Contested, RefusalReason, Refused, Trouble, TroubleKind } from "#core/cluster-fleet/transport.ts"
import { type FailureKind, KubeError } from "#runtime/client/errors.ts"

export const given = <T>(value: T): Answer<T> => ({ ok: true, value })

export const trouble = (is: TroubleKind, message: string, retryAfterMs?: number): { ok: false; trouble: Trouble } => ({
  ok: false,
  trouble: { is, message: boundMessage(message), ...(retryAfterMs !== undefined && { retryAfterMs }) },
})

const troubles: Record<FailureKind, TroubleKind> = {
  Conflict: "Conflict",
  Exists: "Conflict",
  Gone: "Unreachable",
  NotFound: "Conflict",
  Invalid: "Undeliverable",
  Forbidden: "Forbidden",
  Refused: "Forbidden",
  Throttled: "Throttled",
  Unreachable: "Unreachable",
  UnknownOutcome: "UnknownOutcome",
  WritesRefused: "WritesRefused",
}

/** A failure of the client as a value. Another error is a bug, and is thrown on. */
export function troubleOf(error: unknown): { ok: false; trouble: Trouble } {
  if (!(error instanceof KubeError)) throw error
  const is = error.status === 401 ? "BadCredential" : troubles[error.kind]
  return trouble(is, error.message, error.retryAfterMs)
}

/** A write that the cluster answered and did not take: the same write would be answered the same. */
export function refusalOf(error: unknown): Refused | Contested | undefined {
  if (!(error instanceof KubeError) || error.status === 401) return undefined
  if (isFieldConflict(error)) return { is: "Contested", message: boundMessage(error.said) }
  const reason = refusalReason(error)
  return reason && { is: "Refused", reason, message: boundMessage(error.said) }
}

/** A field of ours is another manager's: the server names both. Not a changed resourceVersion, which has no causes. */
const isFieldConflict = ({ kind, causes }: KubeError) =>
  kind === "Conflict" && causes.some(({ reason }) => reason === "FieldManagerConflict")

function refusalReason({ kind, said }: KubeError): RefusalReason | undefined {
  if (/ValidatingAdmissionPolicy|admission webhook/.test(said.slice(0, 400)) || kind === "Refused")
    return "AdmissionDenied"
  if (kind === "Forbidden") return "Forbidden"
  // A manifest that does not fit the kind is a 500 of server-side apply, and is certainly not applied.
  if (kind === "Invalid" || said.startsWith("failed to create typed patch object")) return "Invalid"
  // Of an apply, which creates what is missing.
  if (kind === "NotFound") return /^namespaces? /.test(said) ? "NamespaceMissing" : "KindMissing"
  return undefined
}
