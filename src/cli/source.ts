import type { AlternateImageSource } from "#api/v1alpha1/alternateimagesource/index.ts"

/** The facts about one AlternateImageSource that are shown and that `aim wait` decides by. Derived from the object alone. */
export type Source = {
  name: string
  namespace: string
  state: "NotSeenYet" | "Stalled" | "Ready" | "NotReady"
  reason: string
  message: string
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
    ...judge(object),
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

/** A condition counts only for the last generation. */
function judge({ metadata, status }: AlternateImageSource): Pick<Source, "state" | "reason" | "message"> {
  const { generation = 0 } = metadata
  const current = (status?.conditions ?? []).filter(({ observedGeneration = 0 }) => observedGeneration >= generation)
  const ready = current.find(({ type }) => type === "Ready")
  const stalled = current.find(({ type, status: is }) => type === "Stalled" && is === "True")
  if (!ready) return { state: "NotSeenYet", reason: "", message: "no controller has observed it yet" }
  const { reason, message } = stalled ?? ready
  return { state: stalled ? "Stalled" : ready.status === "True" ? "Ready" : "NotReady", reason, message }
}
