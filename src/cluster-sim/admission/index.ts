import type { ServerStorage } from "../apiserver/index.ts"
import type { ServedKind } from "../apiserver/kind.ts"
import type { Policies, PolicyRequest } from "../apiserver/policies.ts"
import { type Authorizer, superuser } from "../auth/index.ts"
import type { Json } from "../object.ts"
import { attributesOf, withObject } from "./attributes.ts"
import { boundPolicies, mutatingHook, validatingHook } from "./hooks.ts"
import type { World } from "./invocations.ts"
import { mutationRound } from "./mutate.ts"
import { validateRequest } from "./validate.ts"

/** The admission policies of a cluster, in force from the write that makes them. */
export function admissionPolicies(storage: ServerStorage, authorizer: Authorizer): Policies {
  const mutating = boundPolicies(storage, "MutatingAdmissionPolicy", mutatingHook)
  const validating = boundPolicies(storage, "ValidatingAdmissionPolicy", validatingHook)
  const world: World = {
    authorizer,
    kind: storage.kind,
    list: (kind, namespace) => storage.list(kind, { namespace }).items,
    equivalents: kind => storage.kinds().filter(each => each.storage === kind.storage && each !== kind),
    namespace(name) {
      const namespaces = storage.kind("v1", "Namespace") as ServedKind
      return storage.get(namespaces, { name })
    },
  }
  return {
    mutate(request, plugins) {
      const object = plugins(request.object)
      const hooks = mutating()
      if (hooks.length === 0 || isExempt(request)) return object
      const first = round(request, object)
      if (!first.isPatched) return first.object
      // The server's own plugins see the object that policies changed. Then policies with reinvocation run again.
      return round(request, plugins(first.object), first.again).object

      function round(request: PolicyRequest, object: Json, only?: ReadonlySet<string>) {
        const { shown, whole } = asSent(request, object)
        const attributes = attributesOf({ ...request, object: shown }, request.options.user ?? superuser)
        const made = mutationRound(hooks, attributes, world, only)
        return { ...made, object: whole(withObject({ ...request, object: shown }, made.object)) }
      }
    },
    validate(request) {
      const hooks = validating()
      if (hooks.length === 0 || isExempt(request)) return
      // By now the server has generated a name where the request had none.
      const name = request.name || request.object?.metadata.name || ""
      validateRequest(hooks, attributesOf({ ...request, name }, request.options.user ?? superuser), world)
    },
  }
}

const policyKinds = new Set([
  "validatingadmissionpolicies",
  "validatingadmissionpolicybindings",
  "mutatingadmissionpolicies",
  "mutatingadmissionpolicybindings",
])

/** Policies do not apply to policies, nor to the server's own writes during a binding. */
const isExempt = ({ kind, subresource, options }: PolicyRequest) =>
  options.asksNoPolicy ||
  subresource === "binding" ||
  (kind.group === "admissionregistration.k8s.io" && policyKinds.has(kind.plural))

/** A new object before the server has given it name, uid and time; and the same with them. */
function asSent({ operation, name }: PolicyRequest, object: Json): { shown: Json; whole(object: Json): Json } {
  if (operation !== "create") return { shown: object, whole: made => made }
  const { uid, creationTimestamp, name: given, ...rest } = object.metadata
  const own = name ? { name: given } : {}
  const invented = name ? { uid, creationTimestamp } : { uid, creationTimestamp, name: given }
  return {
    shown: { ...object, metadata: { ...own, ...rest } },
    whole: made => ({ ...made, metadata: { ...made.metadata, ...invented } }),
  }
}
