import type { AlternateImageSource, Reason } from "#api/v1alpha1/alternateimagesource/index.ts"
import { replacementOf } from "#core/image/equivalent.ts"
import { sameImage } from "#core/image/reference.ts"
import type { Trace } from "#core/pods/trace.ts"
import type { Projected, WatchedCache } from "#runtime/cache/cache.ts"
import type { Wiring } from "#runtime/controller.ts"
import type { KubeObject } from "#runtime/resource.ts"
import { alternateImageSources } from "./resources.ts"

type Root = { readonly uid: string; readonly namespace: string }

type Source = Projected & {
  readonly namespace: string
  readonly sets: readonly { equivalentRepositories: string[] }[]
  /** Images that it found in no other repository. */
  readonly given: readonly string[]
}

/**
 * Whether an AlternateImageSource is about to mend what a pod cannot pull. Such a pull failure must not count against a
 * tier at once: it becomes a failure only if no other repository has the image, or at the object's deadline.
 */
export class Failover {
  readonly #wiring: Wiring
  readonly #onChange: (uid: string) => void
  /** By namespace, the objects with pods that cannot pull: no others are concerned. */
  readonly #concerned = new Map<string, Set<string>>()
  #sources: WatchedCache<Source> | undefined

  /** Calls back with the uid of an object for which the answer may have changed. */
  constructor(wiring: Wiring, onChange: (uid: string) => void) {
    this.#wiring = wiring
    this.#onChange = onChange
  }

  /** Where the kind is not installed the list never arrives, and nothing waits for it. */
  open(): void {
    if (this.#sources) return
    const indexes = { namespace: (source: Source) => [source.namespace] }
    this.#sources = this.#wiring.watch<Source>(alternateImageSources, { project: readSource, indexes })
    this.#sources.subscribe(({ before, after }) => {
      const gist = (source: Source | undefined) => JSON.stringify([source?.sets, source?.given])
      if (gist(before) === gist(after)) return
      for (const uid of [...(this.#concerned.get((after ?? before)!.namespace) ?? [])]) this.#onChange(uid)
    })
  }

  close(): void {
    this.#sources?.close()
    this.#sources = undefined
    this.#concerned.clear()
  }

  forget({ uid, namespace }: Root): void {
    this.#note({ uid, namespace }, false)
  }

  /** The trace, in which a pull that an AlternateImageSource may still mend is not yet a failure. */
  soften(trace: Trace | undefined, root: Root): Trace | undefined {
    const cannotPull = trace?.troubles.some(({ reason }) => reason === "ImagePullFailed") ?? false
    this.#note(root, cannotPull)
    if (!trace || !cannotPull) return trace
    const { namespace } = root
    const troubles = trace.troubles.map(trouble =>
      trouble.reason === "ImagePullFailed" && this.#isExpected(namespace, trouble.images ?? [])
        ? { ...trouble, isTentative: true }
        : trouble,
    )
    return { ...trace, troubles }
  }

  #note({ uid, namespace }: Root, isConcerned: boolean): void {
    const known = this.#concerned.get(namespace)
    if (isConcerned) this.#concerned.set(namespace, (known ?? new Set()).add(uid))
    else if (known?.delete(uid) && known.size === 0) this.#concerned.delete(namespace)
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
