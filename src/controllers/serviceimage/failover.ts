import type { AlternateImageSource, Reason } from "#api/v1alpha1/alternateimagesource/index.ts"
import { replacementOf } from "#core/equivalent.ts"
import { sameImage } from "#core/image-reference.ts"
import type { Trace } from "#core/trace.ts"
import type { Cache, Projected } from "#runtime/cache/cache.ts"
import type { Wiring } from "#runtime/controller.ts"
import type { KubeObject } from "#runtime/resource.ts"
import { alternateImageSources } from "../alternateimagesource/resources.ts"

type Source = Projected & {
  readonly namespace: string
  readonly sets: readonly { equivalentRepositories: string[] }[]
  /** Images that it could not find anywhere else. */
  readonly given: readonly string[]
}

/**
 * Whether somebody else is about to mend what a pod cannot pull. A pull failure that an AlternateImageSource fails over
 * must not count against a tier first: it becomes a failure only if that finds nothing, or at the object's deadline.
 */
export class Failover {
  readonly #wiring: Wiring
  readonly #onChange: (namespace: string) => void
  #sources: (Cache<Source> & { close(): void }) | undefined

  /** Calls back with a namespace in which that may have changed. */
  constructor(wiring: Wiring, onChange: (namespace: string) => void) {
    this.#wiring = wiring
    this.#onChange = onChange
  }

  /** Where the kind is not installed nothing is ever listed, and nobody waits for it. */
  open(): void {
    if (this.#sources) return
    const indexes = { namespace: (source: Source) => [source.namespace] }
    this.#sources = this.#wiring.watch<Source>(alternateImageSources, { project: readSource, indexes })
    this.#sources.subscribe(({ before, after }) => {
      const gist = (source: Source | undefined) => JSON.stringify([source?.sets, source?.given])
      if (gist(before) !== gist(after)) this.#onChange((after ?? before)!.namespace)
    })
  }

  close(): void {
    this.#sources?.close()
    this.#sources = undefined
  }

  /** The trace, in which a pull that somebody looks after is not yet a failure. */
  soften(trace: Trace | undefined, namespace: string): Trace | undefined {
    if (!trace?.troubles.some(({ reason }) => reason === "ImagePullFailed")) return trace
    const troubles = trace.troubles.map(trouble =>
      trouble.reason === "ImagePullFailed" && this.#isExpected(namespace, trouble.images ?? [])
        ? { ...trouble, isTentative: true }
        : trouble,
    )
    return { ...trace, troubles }
  }

  #isExpected(namespace: string, images: readonly string[]): boolean {
    for (const key of this.#sources?.keysBy("namespace", namespace) ?? []) {
      const { sets, given } = this.#sources!.get(key)!
      const hasWay = (image: string) => replacementOf(image, sets) && !given.some(each => sameImage(each, image))
      if (images.some(hasWay)) return true
    }
    return false
  }
}

const hopeless = new Set<Reason>([
  "AllSourcesDown",
  "NotFoundAnywhere",
  "DigestDiffers",
  "DigestUnknown",
  "SecretMissing",
  "Denied",
  "SignatureRejected",
  "DiskFull",
  "Forbidden",
  "Refused",
])

function readSource(object: KubeObject): Source {
  const { metadata, spec, status } = object as AlternateImageSource
  const incidents = status?.targetsAvailable?.flatMap(({ incident }) => incident ?? []) ?? []
  return {
    resourceVersion: metadata.resourceVersion ?? "",
    namespace: metadata.namespace ?? "",
    sets: spec.imageSourceReplacements.filter(({ equivalentRepositories }) => equivalentRepositories.length > 1),
    given: incidents.filter(({ reason }) => hopeless.has(reason)).map(({ image }) => image),
  }
}
