import { parseImageReference, repositoryOf, sameImage } from "../image/reference.ts"

/** A pod that gets the requests of a Service, and runs another version than the rollout's. */
export type OldEndpoint = { readonly service: string; readonly pod: string; readonly image: string }

/** An EndpointSlice: the Service as `namespace/name`, and the names of the pods that are ready for its requests. */
export type Backing = { readonly service: string; readonly endpoints: readonly { readonly pod: string | undefined }[] }

/**
 * The pods behind Services that run an image of the same repository as the rollout's and none of its images. A pod that
 * is not known is gone, or too new: nothing is said of it. Each pod is named once for each Service.
 */
export function oldEndpoints(
  slices: readonly Backing[],
  images: readonly string[],
  imagesAt: (pod: string) => readonly string[] | undefined,
): OldEndpoint[] {
  const repositories = new Set(images.map(repositoryIn).filter(each => each !== undefined))
  const found = new Map<string, OldEndpoint>()
  for (const { service, endpoints } of slices)
    for (const { pod: name } of endpoints) {
      if (service === "" || name === undefined) continue
      const pod = `${service.slice(0, service.indexOf("/"))}/${name}`
      const own = (imagesAt(pod) ?? []).filter(image => repositories.has(repositoryIn(image) ?? ""))
      const image = own.find(each => !images.some(wanted => sameImage(each, wanted)))
      // A pod may have the image twice, as of an init container: one that it has now is enough.
      const isCurrent = own.some(each => images.some(wanted => sameImage(each, wanted)))
      if (image !== undefined && !isCurrent) found.set(`${service} ${pod}`, { service, pod, image })
    }
  return [...found.values()].sort((a, b) => (a.service + a.pod < b.service + b.pod ? -1 : 1))
}

function repositoryIn(image: string): string | undefined {
  const parsed = parseImageReference(image)
  return parsed.ok ? repositoryOf(parsed.reference) : undefined
}
