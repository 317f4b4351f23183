import type { Canary, Service } from "#api/v1alpha1/canary/index.ts"
import { isSame } from "#lib/same.ts"
import { annotationsOf, fieldsOf, isMade, labelsOf, ownerOf, withMetadata, withoutOwner } from "../before.ts"
import { digestOf } from "../checksum.ts"
import type { RouteContext, RouteObject } from "../router.ts"
import { type Services, serviceNamesOf } from "../services.ts"

type Port = Readonly<Record<string, unknown>>

/** What a Service selects, and on which ports: the part of it that its owner decides. */
type Revision = { readonly selector: Readonly<Record<string, string>>; readonly ports: readonly Port[] }

/** A port of a node is given by the server, and to one Service alone. */
function revisionOf({ spec }: RouteObject): Revision {
  const { selector = {}, ports = [] } = fieldsOf(spec) as Partial<Revision>
  return { selector, ports: ports.map(({ nodePort: _, ...port }) => port) }
}

/** The name of a revision. Equal for Services that send the same requests to the same pods. */
export const revisionHash = (service: RouteObject): string => digestOf(revisionOf(service))

/** Whether a Service selects a pod with these labels. */
export const isSelected = (service: RouteObject, labels: Readonly<Record<string, string>>): boolean =>
  Object.entries(revisionOf(service).selector).every(([key, value]) => labels[key] === value)

/**
 * The Services of both sides for these revisions; the one that is the target stays as its owner has it. A revision that
 * is found nowhere leaves its Service as it is.
 */
export function routedServices(
  canary: Canary,
  hashes: RouteContext["hashes"],
  existing: Partial<Services>,
): Partial<Services> {
  const known = [existing.apex, existing.target, existing.source].filter(each => each !== undefined)
  const found = (hash: string | undefined) => known.find(each => revisionHash(each) === hash)
  const names = serviceNamesOf(canary)
  const { primary, canary: metadata } = canary.spec.service ?? {}
  const [source, target] = [found(hashes.source), found(hashes.target ?? hashes.source)]
  const made = {
    source: source && selecting(canary, names.source, existing.source, source, primary),
    target: target && selecting(canary, names.target, existing.target, target, metadata),
  }
  return { ...existing, ...(made.source && { source: made.source }), ...(made.target && { target: made.target }) }
}

function selecting(
  canary: Canary,
  name: string,
  existing: RouteObject | undefined,
  like: RouteObject,
  metadata: Service["primary"],
): RouteObject {
  const { namespace } = canary.metadata
  const base: RouteObject = existing ?? {
    apiVersion: "v1",
    kind: "Service",
    metadata: { name, ...(namespace !== undefined && { namespace }), ownerReferences: [ownerOf(canary)] },
    spec: { type: "ClusterIP" },
  }
  const wanted = revisionOf(like)
  const spec = isSame(revisionOf(base), wanted) ? base.spec : { ...fieldsOf(base.spec), ...wanted }
  return withMetadata(
    { ...base, spec },
    {
      labels: { ...labelsOf(base), ...metadata?.labels },
      annotations: { ...annotationsOf(base), ...metadata?.annotations },
    },
  )
}

/** One of the two Services when the Canary goes; undefined where it is deleted. */
export const leftService = (object: RouteObject, isReverted: boolean): RouteObject | undefined =>
  isReverted && isMade(object) ? undefined : withoutOwner(object)
