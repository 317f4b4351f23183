import { apiVersionOf, type KubeObject, keyOf, type Resource } from "#runtime/resource.ts"

type KindOfObject = { readonly apiVersion: string; readonly kind: string }

/** The state of a cluster at one moment: whole lists of objects, and which lists could not be read. */
export class Inventory {
  readonly #lists = new Map<string, Map<string, KubeObject>>()
  /** The same by namespace, filled on demand. */
  readonly #spaces = new Map<string, Map<string, KubeObject[]>>()
  readonly #unreadable = new Map<string, string>()

  /** Records that the list of this kind was read, even if it is empty. */
  list(kind: KindOfObject): void {
    const id = idOf(kind)
    if (!this.#lists.has(id)) this.#lists.set(id, new Map())
  }

  add(object: KubeObject): void {
    const kind = { apiVersion: object.apiVersion ?? "", kind: object.kind ?? "" }
    this.list(kind)
    this.#spaces.delete(idOf(kind))
    this.#lists.get(idOf(kind))!.set(keyOf(object.metadata), object)
  }

  fail(kind: KindOfObject, message: string): void {
    this.#unreadable.set(idOf(kind), message)
  }

  /** Why this list is missing; undefined if it is not. */
  whyMissing(kind: KindOfObject): string | undefined {
    const id = idOf(kind)
    return this.#lists.has(id) ? undefined : (this.#unreadable.get(id) ?? "it was not looked at")
  }

  get unreadable(): ReadonlyMap<string, string> {
    return this.#unreadable
  }

  of<T extends KubeObject = KubeObject>(kind: KindOfObject): ReadonlyMap<string, T> {
    return (this.#lists.get(idOf(kind)) ?? new Map()) as ReadonlyMap<string, T>
  }

  /** Those of one namespace. */
  in(namespace: string, kind: KindOfObject): readonly KubeObject[] {
    const id = idOf(kind)
    const spaces =
      this.#spaces.get(id) ?? Map.groupBy(this.of(kind).values(), ({ metadata }) => metadata.namespace ?? "")
    this.#spaces.set(id, spaces)
    return spaces.get(namespace) ?? []
  }
}

export const kindOf = (resource: Resource) => ({ apiVersion: apiVersionOf(resource), kind: resource.kind })

const idOf = ({ apiVersion, kind }: KindOfObject) => `${apiVersion} ${kind}`
