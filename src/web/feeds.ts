import type { ServiceImage } from "#api/v1alpha1/serviceimage/index.ts"
import { liveNeeds } from "#explain/serviceimage/live.ts"
import { type Resource, resourceName } from "#runtime/resource.ts"
import { type FollowedFleet, followFleet } from "./fleet.ts"
import type { KindPage } from "./kinds/kind.ts"
import { serviceImagePage } from "./kinds/serviceimage.ts"
import { type Around, type FollowedList, followList } from "./list.ts"
import { mayFollow } from "./rights.ts"
import { Shared } from "./shared.ts"
import type { Viewer } from "./viewer.ts"

/** Everything that is followed for viewers: one list and watch for each, however many viewers there are. */
export class Feeds {
  readonly #around: Around
  readonly #lists = new Map<string, Shared<FollowedList>>()
  readonly #fleets = new Map<string, Shared<FollowedFleet>>()

  constructor(around: Around) {
    this.#around = around
  }

  list(page: KindPage, namespace: string | undefined): Shared<FollowedList> {
    const id = `${resourceName(page.resource)} ${namespace ?? ""}`
    return this.#shared(this.#lists, id, client => followList(page, namespace, client, this.#around))
  }

  /** ServiceImages are read by the list of all: a viewer that joins must be in that list too. */
  fleet(target: Resource): Shared<FollowedFleet> {
    const serviceImages = this.list(serviceImagePage, undefined)
    const all = () => {
      const list = serviceImages.current
      return list ? [...list.keys()].map(key => list.object(key) as unknown as ServiceImage) : []
    }
    return this.#shared(this.#fleets, resourceName(target), client => followFleet(target, all, client, this.#around))
  }

  /** What a viewer lacks to see single objects, in words; empty where nothing is missing. */
  async lacks({ client }: Viewer, target: Resource): Promise<string> {
    for (const resource of [target, ...liveNeeds])
      if (!(await mayFollow(client, resource)))
        return `single objects are not shown: you may not list and watch ${resourceName(resource)} in all namespaces`
    return ""
  }

  /** A viewer's credentials no longer work. */
  expel(viewer: Viewer): void {
    for (const shared of [...this.#lists.values(), ...this.#fleets.values()]) shared.expel(viewer)
  }

  close(): void {
    for (const shared of [...this.#lists.values(), ...this.#fleets.values()]) shared.end()
  }

  #shared<T extends FollowedList | FollowedFleet>(
    all: Map<string, Shared<T>>,
    id: string,
    open: ConstructorParameters<typeof Shared<T>>[0],
  ): Shared<T> {
    const known = all.get(id)
    if (known) return known
    const made = new Shared<T>(open, this.#around.clock, () => all.delete(id))
    all.set(id, made)
    return made
  }
}
