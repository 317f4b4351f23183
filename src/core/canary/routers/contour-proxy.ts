import { fieldsOf } from "../before.ts"
import type { Filter, Match, Ref, Rule } from "./http-route.ts"

/** The part of an HTTPProxy that is read and written, to and from rules of an HTTPRoute. Other fields are kept. */

type Fields = Readonly<Record<string, unknown>>

/** A Service of a route, with a weight, or with copies of its requests. */
type Backend = { readonly name: string; readonly port: number; readonly weight?: number; readonly mirror?: boolean }

type Route = { readonly services?: readonly Backend[]; readonly [other: string]: unknown }

export type Condition = {
  readonly prefix?: string
  readonly exact?: string
  readonly regex?: string
  readonly header?: { readonly name: string; readonly exact?: string; readonly regex?: string }
  readonly queryParameter?: { readonly name: string; readonly exact?: string; readonly regex?: string }
}

export const read = ({ routes, ...spec }: Fields): Fields => ({
  ...spec,
  rules: ((routes ?? []) as readonly Route[]).map(ruleOf),
})

export const write = ({ rules, ...spec }: Fields): Fields => ({
  ...spec,
  routes: (rules as readonly Rule[]).map(routeOf),
})

function ruleOf({ services = [], ...route }: Route): Rule {
  const refs = services.filter(({ mirror }) => !mirror)
  const copies = services.filter(({ mirror }) => mirror)
  return {
    ...route,
    ...(services.length > 0 && { backendRefs: shared(refs) }),
    ...(copies.length > 0 && {
      filters: copies.map(
        ({ mirror: _, ...backendRef }): Filter => ({ type: "RequestMirror", requestMirror: { backendRef } }),
      ),
    }),
  }
}

/** Without any weight all have the same share. Beside one with a weight, one without has none. */
function shared(refs: readonly Backend[]): readonly Ref[] {
  const isEqual = refs.every(({ weight = 0 }) => weight === 0)
  return refs.map(({ mirror: _, weight, ...ref }) => ({
    ...ref,
    ...(isEqual ? weight !== undefined && { weight: 1 } : { weight: weight ?? 0 }),
  }))
}

function routeOf({ backendRefs, filters = [], matches: _, ...route }: Rule): Route {
  const copies = filters.flatMap(({ requestMirror }) => (requestMirror ? [requestMirror] : []))
  const services = [
    ...(backendRefs ?? []).map(backendOf),
    ...copies.map(({ backendRef, percent }) => ({
      ...backendOf(backendRef),
      mirror: true,
      ...(percent !== undefined && { weight: percent }),
    })),
  ]
  return { ...route, ...(backendRefs && { services }) }
}

const backendOf = ({ group: _, kind: _kind, filters: _filters, ...backend }: Ref) => backend as Backend

export const conditionsIn = (rule: Rule) => (rule.conditions ?? []) as readonly Condition[]

/** A match in the words of an HTTPProxy, where all conditions of a route must hold. */
export function conditionsOf({ path, headers = [], queryParams = [] }: Match): readonly Condition[] {
  const compared = ({ type, name, value }: (typeof headers)[number]) =>
    type === "RegularExpression" ? { name, regex: value } : { name, exact: value }
  const words = { PathPrefix: "prefix", Exact: "exact", RegularExpression: "regex" } as const
  return [
    ...(path ? [{ [words[path.type as keyof typeof words]]: path.value }] : []),
    ...headers.map(header => ({ header: compared(header) })),
    ...queryParams.map(parameter => ({ queryParameter: compared(parameter) })),
  ]
}

/** What Contour says of it: valid, or why not. Nothing where it has not looked at it as it is now. */
export function saidOf(status: unknown, generation: number | undefined) {
  const conditions = (fieldsOf(status).conditions ?? []) as readonly Fields[]
  const valid = conditions.find(({ type }) => type === "Valid")
  if (!valid || valid.observedGeneration !== generation) return undefined
  const [error] = (valid.errors ?? []) as readonly Fields[]
  return {
    isValid: valid.status === "True",
    isOrphaned: error?.type === "Orphaned",
    why: String(error?.message ?? valid.message ?? "without a reason").slice(0, 300),
  }
}
