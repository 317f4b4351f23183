import type { AlternateImageSource } from "#api/v1alpha1/alternateimagesource/index.ts"
import { type Standing, standingOf } from "#runtime/standing.ts"

/** The facts about one AlternateImageSource that are shown and that `aim wait` decides by. Derived from the object alone. */
export type Source = Standing & {
  name: string
  namespace: string
  targets: number
  /** Containers that do not run as their workload says. */
  astray: Astray[]
  switches: Switch[]
}

type Target = NonNullable<AlternateImageSource["status"]>["targetsAvailable"][number]
export type Astray = { target: string; container: string; from: string; incident?: Target["incident"] }
export type Switch = NonNullable<Target["switches"]>[number] & { target: string; container: string }

export function sourceOf(object: AlternateImageSource): Source {
  const { metadata, status } = object
  const all = status?.targetsAvailable ?? []
  const targetOf = ({ type, name }: Target) => `${type.kind}/${name}`
  return {
    name: metadata.name,
    namespace: metadata.namespace ?? "",
    ...standingOf(object),
    targets: status?.targets ?? 0,
    astray: all
      .filter(each => each.incident !== undefined || isSwitched(each))
      .map(each => ({
        target: targetOf(each),
        container: each.container,
        from: each.currentRepository,
        ...(each.incident && { incident: each.incident }),
      })),
    switches: all
      .flatMap(each =>
        (each.switches ?? []).map(one => ({ ...one, target: targetOf(each), container: each.container })),
      )
      .sort((a, b) => (a.time < b.time ? 1 : -1)),
  }
}

/** Whether the container is still pulled from where the last switch led to. */
function isSwitched({ switches = [], currentRepository }: Target): boolean {
  const last = switches.at(-1)
  return last !== undefined && last.reason !== "SwitchedBack" && last.newImage.startsWith(currentRepository)
}
