import type { ServiceImage } from "#api/v1alpha1/serviceimage/index.ts"
import { planned } from "#explain/serviceimage/planned.ts"
import { wouldBe } from "#explain/serviceimage/would-be.ts"
import { planLines } from "#operations/plan-words.ts"
import { Failure } from "#operations/refusal.ts"
import { KubeError } from "#runtime/client/errors.ts"
import { followable, type LookDeps, looked, withFleet } from "./look.ts"
import { shown } from "./text.ts"
import type { Viewer } from "./viewer.ts"

const [nextMost, linesMost] = [5, 40]

/**
 * What `aim plan` would say after a change, from the objects that are followed anyway. It is for information: where it
 * cannot be had, the reason stands in its place and the action is possible all the same.
 */
export async function foresee(
  viewer: Viewer,
  { before, after }: { before: ServiceImage; after: ServiceImage },
  deps: LookDeps & { now(): number; program: string },
): Promise<string[]> {
  const { program } = deps
  try {
    const resource = await followable(viewer, after.spec.target, deps)
    const seen = await withFleet(viewer, resource, deps, fleet => looked(fleet, after.metadata.name, deps.clock))
    const now = deps.now()
    const surveyed = wouldBe(seen, after, now)
    const { lookAgainAt: _, ...plan } = planned(surveyed, { lacksGrant: () => false }, { most: nextMost, before })
    const lines = planLines(plan, { now, program })
    const left = lines.length - linesMost
    return [...lines.slice(0, linesMost), ...(left > 0 ? [`  and ${left} more lines: ${program} plan`] : [])].map(
      line => shown(line, 1024),
    )
  } catch (error) {
    if (error instanceof Failure || error instanceof KubeError)
      return [`The plan is not known: ${shown(error instanceof KubeError ? error.said : error.message)}`]
    throw error
  }
}
