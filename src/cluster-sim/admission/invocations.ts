import type { ServedKind } from "../apiserver/kind.ts"
import type { Authorizer } from "../auth/index.ts"
import type { Json, Obj } from "../object.ts"
import { type Attributes, converted, isNamespaces } from "./attributes.ts"
import { EvaluationFailed, OutOfBudget, requestValue, requestValues, type Scope, scopeOf } from "./expressions.ts"
import type { Binding, Hook } from "./hooks.ts"
import { ConfigurationError, matched, paramsFor, type Surroundings } from "./matching.ts"

/** What policies know of the cluster besides the request. */
export type World = Surroundings & {
  kind(apiVersion: string, kind: string): ServedKind | undefined
  list(kind: ServedKind, namespace: string | undefined): readonly Obj[]
  authorizer: Authorizer
}

/** One evaluation of a policy: for a binding, and one of its parameters. */
export type Invocation<H> = { hook: H; binding: Binding; as: ServedKind; param: Json }

/** Why a policy cannot be evaluated. A policy that fails open lets the request pass. */
export type Obstacle<H> = { hook: H; binding: Binding | undefined; message: string }

/** The policies that are evaluated for a request, each with its binding and parameter. */
export function* invocations<H extends Hook<unknown>>(
  hooks: readonly H[],
  request: Attributes,
  world: World,
): Generator<Invocation<H> | Obstacle<H>> {
  for (const hook of hooks) {
    const as = matched(hook.constraints, request, world)
    if (!as) continue
    const { paramKind } = hook
    const params = paramKind && world.kind(paramKind.apiVersion, paramKind.kind)
    if (paramKind && !params) {
      const message = `failed to configure policy: failed to find resource referenced by paramKind: '${goKind(paramKind)}'`
      yield { hook, binding: undefined, message }
      continue
    }
    for (const binding of hook.bindings) {
      if (binding.resources && !matched(binding.resources, request, world)) continue
      try {
        for (const param of paramsFor(binding.paramRef, params, request, world.list)) yield { hook, binding, as, param }
      } catch (error) {
        if (!(error instanceof ConfigurationError)) throw error
        yield { hook, binding, message: `failed to configure binding: ${error.message}` }
      }
    }
  }
}

/** As Go writes a GroupVersionKind. */
function goKind({ apiVersion, kind }: { apiVersion: string; kind: string }): string {
  const [group, version] = apiVersion.includes("/") ? apiVersion.split("/") : ["", apiVersion]
  return `${group}/${version}, Kind=${kind}`
}

/** Makes the scopes of one request. Values that policies share are translated once. */
export function scopes(request: Attributes, world: World) {
  const known = new Map<ServedKind, ReturnType<typeof requestValues>>()
  const shared = (as: ServedKind) => {
    let values = known.get(as)
    if (!values) {
      const { served, object, old } = request
      const seen = { object: converted(object, served, as), old: converted(old, served, as) }
      values = requestValues(request, seen, world.authorizer)
      known.set(as, values)
    }
    return values
  }
  return ({ hook, as, param }: Invocation<Hook<unknown>>, use: "conditions" | "steps"): Scope => {
    const { served, kind, resource, namespace: name } = request
    const isEquivalent = as !== served
    const matchedAs = {
      kind: isEquivalent ? { group: as.group, version: as.version, kind: as.kind } : kind,
      // Conditions are evaluated before the server records which resource it matched.
      resource:
        isEquivalent && use === "steps" ? { group: as.group, version: as.version, resource: as.plural } : resource,
    }
    const isInside = use === "steps" && name !== "" && !isNamespaces(served)
    const given = {
      request: requestValue(request, matchedAs),
      params: param,
      namespace: isInside ? world.namespace(name) : undefined,
    }
    return scopeOf(shared(as), given, hook.variables)
  }
}

/** Whether a policy's conditions hold. If one of them fails and no other is false, throws that failure. */
export function conditionsHold({ hook }: Invocation<Hook<unknown>>, scope: () => Scope): boolean {
  if (hook.conditions.length === 0) return true
  const within = scope()
  const failures: string[] = []
  for (const { compiled } of hook.conditions) {
    try {
      if (compiled.evaluate(within) === false) return false
    } catch (error) {
      if (!(error instanceof EvaluationFailed) && !(error instanceof OutOfBudget)) throw error
      failures.push(error.message)
    }
  }
  if (failures.length === 0) return true
  if (!hook.isFailClosed) return false
  const [only] = failures
  throw new Refused(failures.length === 1 && only !== undefined ? only : `[${failures.join(", ")}]`)
}

/** The refusal by a policy that could not be evaluated. */
export class Refused extends Error {}
