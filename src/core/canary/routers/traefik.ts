import { fieldsOf } from "../before.ts"
import type { RouteContext, Router } from "../router.ts"
import type { Ref, Rule } from "./http-route.ts"
import { routeRouter } from "./route-router.ts"
import { byWeight, unreported, unusedByWeights, weightsOnly } from "./weights-only.ts"

type Fields = Readonly<Record<string, unknown>>
type Services = RouteContext["services"]

const kind = { group: "traefik.io", version: "v1alpha1", kind: "TraefikService", plural: "traefikservices" } as const

/** A weighted TraefikService is one rule, for all requests. One of another type has none. */
function read({ weighted, ...spec }: Fields, own?: Services): Fields {
  if (weighted === undefined) return { ...spec, rules: [] }
  const { services, ...rest } = fieldsOf(weighted)
  const refs = services as readonly Ref[] | undefined
  return { ...spec, weighted: rest, rules: [refs ? { backendRefs: own ? withIdle(refs, own) : refs } : {}] }
}

/** Ours that are missing have no share. They stand behind each other, as they would be written. */
function withIdle(refs: readonly Ref[], { source, target }: Services): readonly Ref[] {
  const isOne = (ref: Ref, name: string) => ref.name === name && ref.kind !== kind.kind
  const at = refs.findIndex(ref => isOne(ref, source) || isOne(ref, target))
  if (at < 0) return refs
  const idle = (name: string): readonly Ref[] =>
    refs.some(ref => isOne(ref, name)) ? [] : [{ ...refs[at]!, name, weight: 0 }]
  return [...refs.slice(0, at), ...idle(source), refs[at]!, ...idle(target), ...refs.slice(at + 1)]
}

/**
 * Of ours only those with a share are written. Traefik drops a whole TraefikService as long as one of its Services has no
 * pods, which the one of the new revision has not between runs.
 */
function write({ weighted, rules, ...spec }: Fields, own?: Services): Fields {
  const [rule] = rules as readonly Rule[]
  if (!rule) return spec
  const isIdle = ({ name, weight }: Ref) => weight === 0 && (name === own?.source || name === own?.target)
  const services = rule.backendRefs?.filter(ref => !isIdle(ref))
  return { ...spec, weighted: { ...fieldsOf(weighted), ...(services && { services }) } }
}

/**
 * Weights in a TraefikService. As with Flagger, an IngressRoute of its owner names it, and says which host it is for.
 * Traefik builds all of its configuration from what it has read by then, and reports nothing about the object.
 */
export const traefik: Router = {
  ...routeRouter({
    providers: ["traefik"],
    ...{ kind, read, write, isAtOnce: true },
    problemsOf: weightsOnly("a weighted TraefikService"),
    isAccepted: unreported(
      ({ metadata }, { apex }) =>
        `TraefikService ${metadata.name} has no Service ${apex} in weighted.services: add it with its port`,
    ),
    rulesOf: ({ canary, services }) => {
      const { namespace } = canary.metadata
      const port = canary.spec.service?.port
      return [
        {
          backendRefs: [
            { name: services.apex, ...(namespace !== undefined && { namespace }), ...(port && { port }), weight: 1 },
          ],
        },
      ]
    },
    followed: spec => spec,
    divided: byWeight,
  }),
  unused: unusedByWeights,
}
