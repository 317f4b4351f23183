import type { ServedKind } from "../apiserver/kind.ts"
import type { Json, Obj } from "../object.ts"
import { type Compiled, compiled, type NamedExpression } from "./expressions.ts"
import type { MatchResources, ParamRef } from "./matching.ts"

/** A policy that is bound: everything of it that a request needs, compiled. */
export type Hook<Step> = {
  readonly name: string
  readonly constraints: MatchResources
  readonly isFailClosed: boolean
  readonly conditions: readonly { name: string; compiled: Compiled }[]
  readonly variables: readonly { name: string; compiled: Compiled }[]
  readonly paramKind: { apiVersion: string; kind: string } | undefined
  readonly steps: readonly Step[]
  readonly bindings: readonly Binding[]
}

export type Binding = {
  readonly name: string
  readonly resources: MatchResources | undefined
  readonly paramRef: ParamRef | undefined
  readonly actions: readonly ("Deny" | "Warn" | "Audit")[]
}

export type Validation = {
  readonly holds: Compiled
  readonly message: string
  readonly says: Compiled | undefined
  readonly reason: string
}

export type Mutation = { readonly type: "ApplyConfiguration" | "JSONPatch"; readonly patch: Compiled }

export type ValidatingHook = Hook<Validation> & { readonly annotations: readonly Compiled[] }
export type MutatingHook = Hook<Mutation> & { readonly isReinvoked: boolean }

const each = (named: readonly NamedExpression[] = []) =>
  named.map(({ name, expression }) => ({ name, compiled: compiled(expression) }))

function hookOf<Step>({ metadata, spec }: Obj, bindings: readonly Obj[], steps: readonly Step[]): Hook<Step> {
  return {
    name: metadata.name,
    constraints: spec.matchConstraints ?? {},
    isFailClosed: spec.failurePolicy !== "Ignore",
    conditions: each(spec.matchConditions),
    variables: each(spec.variables),
    paramKind: spec.paramKind,
    steps,
    bindings: bindings.map(({ metadata, spec }) => ({
      name: metadata.name,
      resources: spec.matchResources,
      paramRef: spec.paramRef,
      actions: spec.validationActions ?? [],
    })),
  }
}

export function validatingHook(policy: Obj, bindings: readonly Obj[]): ValidatingHook {
  const { validations = [], auditAnnotations = [] } = policy.spec
  const steps = validations.map(
    ({ expression, message = "", messageExpression, reason = "Invalid" }: Json): Validation => ({
      holds: compiled(expression),
      message,
      says: messageExpression ? compiled(messageExpression) : undefined,
      reason,
    }),
  )
  const annotations = auditAnnotations.map(({ valueExpression }: Json) => compiled(valueExpression))
  return { ...hookOf(policy, bindings, steps as Validation[]), annotations }
}

export function mutatingHook(policy: Obj, bindings: readonly Obj[]): MutatingHook {
  const steps = (policy.spec.mutations ?? []).map(
    ({ patchType, applyConfiguration, jsonPatch }: Json): Mutation => ({
      type: patchType,
      patch: compiled((patchType === "JSONPatch" ? jsonPatch : applyConfiguration)?.expression ?? ""),
    }),
  )
  return {
    ...hookOf(policy, bindings, steps as Mutation[]),
    isReinvoked: policy.spec.reinvocationPolicy === "IfNeeded",
  }
}

/** The part of a storage that policies are read from. */
export type PolicyStore = {
  kind(apiVersion: string, kind: string): ServedKind | undefined
  list(kind: ServedKind): { items: readonly Obj[] }
  subscribe(kind: ServedKind, listener: () => void): () => void
}

const apiVersion = "admissionregistration.k8s.io/v1"

/**
 * The policies of a kind that are bound, by name: read and compiled again at the first request after one of them
 * changed. A policy without a binding does nothing.
 */
export function boundPolicies<Made>(
  store: PolicyStore,
  policyKind: string,
  make: (policy: Obj, bindings: readonly Obj[]) => Made,
): () => readonly Made[] {
  const policies = store.kind(apiVersion, policyKind)
  const bindings = store.kind(apiVersion, `${policyKind}Binding`)
  if (!policies || !bindings) return () => []
  let made: readonly Made[] | undefined
  const forget = () => {
    made = undefined
  }
  store.subscribe(policies, forget)
  store.subscribe(bindings, forget)
  return () => {
    made ??= store.list(policies).items.flatMap(policy => {
      const own = store.list(bindings).items.filter(({ spec }) => spec.policyName === policy.metadata.name)
      return own.length > 0 ? [make(policy, own)] : []
    })
    return made
  }
}
