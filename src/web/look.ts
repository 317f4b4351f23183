import type { ServiceImage } from "#api/v1alpha1/serviceimage/index.ts"
import { builtIn } from "#controllers/served-kind.ts"
import type { Surveyed } from "#explain/serviceimage/survey.ts"
import { Failure } from "#operations/refusal.ts"
import { type Clock, sleep } from "#runtime/clock.ts"
import type { Resource } from "#runtime/resource.ts"
import type { Feeds } from "./feeds.ts"
import type { FollowedFleet } from "./fleet.ts"
import { serviceImagePage } from "./kinds/serviceimage.ts"
import { shown } from "./text.ts"
import type { Viewer } from "./viewer.ts"

export type LookDeps = { feeds: Feeds; clock: Clock }

/** The kind of a rollout's objects, where the viewer may see all that they are judged by. */
export async function followable(
  viewer: Viewer,
  { apiVersion, kind }: Pick<ServiceImage["spec"]["target"], "apiVersion" | "kind">,
  { feeds }: LookDeps,
): Promise<Resource> {
  const resource = builtIn({ apiVersion, kind }) ?? (await viewer.client.discover(apiVersion, kind))
  if (!resource) throw new Failure(`the cluster does not serve ${shown(kind, 63)} in ${shown(apiVersion, 253)}`)
  const lacking = await feeds.lacks(viewer, resource)
  if (lacking) throw new Failure(lacking)
  return resource
}

/** Joins what is followed for the question alone; a page that shows the rollout has it open anyway. */
export async function withFleet<T>(
  viewer: Viewer,
  resource: Resource,
  { feeds }: LookDeps,
  ask: (fleet: FollowedFleet) => Promise<T>,
): Promise<T> {
  const [list, fleet] = [feeds.list(serviceImagePage, undefined), feeds.fleet(resource)]
  list.join(viewer)
  const followed = fleet.join(viewer)
  try {
    return await ask(followed)
  } finally {
    fleet.leave(viewer)
    list.leave(viewer)
  }
}

const patienceMs = 10_000

/** A rollout as its controller would decide it now, once its objects are listed. */
export async function looked(fleet: FollowedFleet, name: string, clock: Clock): Promise<Surveyed> {
  for (const until = clock.monotonic() + patienceMs; ; ) {
    const surveyed = fleet.look(name)
    if (surveyed?.fleet) return surveyed
    if (clock.monotonic() > until)
      throw new Failure(`the objects of si/${name} are not listed yet: try again in a moment`)
    await sleep(clock, 100)
  }
}
