import type { Admission, ServedKind, Validation } from "../apiserver/index.ts"
import { forbidden } from "../apiserver/refusals.ts"
import type { KindStorage } from "../apiserver/storage.ts"
import type { Obj } from "../object.ts"
import { claimRefusal, podRefusal, withDefaults } from "./limit-range.ts"
import { charge } from "./quota.ts"

const isPod = ({ group, plural }: ServedKind) => group === "" && plural === "pods"
const isClaim = ({ group, plural }: ServedKind) => group === "" && plural === "persistentvolumeclaims"

/** The LimitRanger and ResourceQuota plugins of the API server. `storage` is called at each write. */
export function limitAdmission(
  storage: () => KindStorage,
  nowMs: () => number,
): { admission: Admission; validations: Validation[] } {
  const inNamespace = (kind: string, namespace: string | undefined): readonly Obj[] => {
    const served = namespace ? storage().kind("v1", kind) : undefined
    return served ? storage().list(served, { namespace }).items : []
  }

  return {
    admission({ operation, kind, object, subresource }) {
      if (operation !== "create" || subresource || !isPod(kind)) return object
      return withDefaults(object, inNamespace("LimitRange", object.metadata.namespace))
    },
    validations: [
      ({ operation, kind, object, old, subresource }) => {
        if (subresource || old?.metadata.deletionTimestamp) return
        if (!(isPod(kind) && operation === "create") && !isClaim(kind)) return
        for (const range of inNamespace("LimitRange", object.metadata.namespace)) {
          const why = isPod(kind) ? podRefusal(object, range) : claimRefusal(object, range)
          if (why) throw forbidden(kind, object.metadata.name, why)
        }
      },
      ({ operation, kind, object, old, subresource, dryRun }) => {
        if (subresource) return
        const isRecounted = kind.group === "" && (kind.plural === "services" || isClaim(kind))
        if (operation !== "create" && !isRecounted) return
        const quotas = inNamespace("ResourceQuota", object.metadata.namespace)
        if (quotas.length === 0) return
        const outcome = charge(kind, { object, old, quotas, nowMs: nowMs() })
        if ("refusal" in outcome) throw forbidden(kind, object.metadata.name, outcome.refusal)
        if (dryRun) return
        const served = storage().kind("v1", "ResourceQuota")
        for (const { quota, used } of outcome.charges)
          if (served)
            storage().update(
              served,
              { ...quota, status: { ...quota.status, used } },
              { subresource: "status", fieldManager: "kube-apiserver" },
            )
      },
    ],
  }
}
