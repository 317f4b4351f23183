import type { AlternateImageSource } from "#api/v1alpha1/alternateimagesource/index.ts"
import type { Decision, Workload } from "#controllers/alternateimagesource/group.ts"
import { observe } from "#controllers/alternateimagesource/observe.ts"
import { plan, type Snapshot } from "#controllers/alternateimagesource/plan.ts"
import { alternateImageSources, pods, workloadKinds } from "#controllers/alternateimagesource/resources.ts"
import { Sources, sourceIndexes } from "#controllers/alternateimagesource/sources.ts"
import { type Instant, parseInstant } from "#lib/instant.ts"
import { type Held, hold } from "#runtime/kind-controller.ts"
import { type KubeObject, keyOf, type Resource } from "#runtime/resource.ts"
import { type Inventory, kindOf } from "../inventory.ts"
import { stillWiring } from "../still.ts"

/** One namespace at one moment, as a controller that has just started sees it. */
export type Survey = {
  readonly namespace: string
  readonly now: Instant
  readonly all: readonly AlternateImageSource[]
  readonly sources: Sources
  /** As they were read. */
  pod(name: string): KubeObject | undefined
  workload(workload: Workload): KubeObject | undefined
}

/** The controller's own index over the AlternateImageSources, workloads and pods of a namespace. */
export function survey(inventory: Inventory, namespace: string, now: Instant): Survey {
  const wiring = stillWiring(inventory, now, namespace)
  const held = wiring.watch<Held<AlternateImageSource>>(alternateImageSources, {
    project: hold,
    indexes: sourceIndexes,
  })
  const sources = new Sources(wiring, held)
  sources.open() // a pod is explained also where no source covers it
  const at = (resource: Resource, name: string) => inventory.of(kindOf(resource)).get(keyOf({ namespace, name }))
  return {
    namespace,
    now,
    all: [...held.entries()].map(([, { object }]) => object),
    sources,
    pod: name => at(pods, name),
    workload: ({ type, name }) => at(workloadKinds.find(each => each.name === type.kind)?.resource ?? pods, name),
  }
}

/**
 * What the controller decides about one source. Only the controller remembers when a failure began, and what registries
 * answered.
 */
export function decisionsOf(
  { sources, now }: Pick<Survey, "sources" | "now">,
  source: AlternateImageSource,
): Decision[] {
  const nothing = { probes: { get: () => undefined }, holds: { on: () => undefined } }
  const look = { key: keyOf(source.metadata), object: source, now }
  const snapshot = observe({ sources, ...nothing }, look)
  return plan({ ...snapshot, seen: remembered(snapshot) }).decisions.map((decision): Decision => {
    // The controller has asked already: the status has its conclusion from the answers.
    const told = decision.asks.length > 0 ? entryOf(source, decision.group)?.incident?.reason : undefined
    return told && told !== "Switched" ? { ...decision, reason: told, asks: [] } : decision
  })
}

/** A failure counts from the start of its incident, which the status has. */
function remembered({ seen, source, now }: Snapshot): Snapshot["seen"] {
  if (seen.is !== "Watched") return seen
  const groups = seen.groups.map(group => {
    const since = parseInstant(entryOf(source, group)?.incident?.since) ?? now
    return { ...group, failing: group.failing.map(pod => ({ ...pod, since })) }
  })
  return { ...seen, groups }
}

/** The entry of the status about a container. */
export const entryOf = (
  { status }: AlternateImageSource,
  { workload, container }: { workload: { uid: string | undefined }; container: string },
) => status?.targetsAvailable.find(each => each.uid === workload.uid && each.container === container)
