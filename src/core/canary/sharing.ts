/**
 * An annotation of a namespace, which its own users cannot write: Canaries of every namespace may use its
 * MetricTemplates and AlertProviders, with the addresses and Secrets that these name.
 */
const sharedAnnotation = "autoimagemanager.io/shared"

export const isSharedBy = (annotations: Readonly<Record<string, string>> | undefined): boolean =>
  annotations?.[sharedAnnotation] === "true"

type Ref = { readonly name: string; readonly namespace?: string | undefined }

/** Where a reference of an object in `namespace` leads. Flagger takes "" for the same namespace. */
export const placeOf = (ref: Ref, namespace: string) => ({ namespace: ref.namespace || namespace, name: ref.name })

/** What to do about an object of another namespace. Whether it exists is not said where it is not shared. */
export const notShared = (kind: string, { namespace, name }: { namespace: string; name: string }): string =>
  `namespace ${namespace} does not share its ${kind} ${name}: an administrator may annotate the namespace with ${sharedAnnotation}=true`
