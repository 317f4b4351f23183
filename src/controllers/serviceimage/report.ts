import type { Reason, ServiceImageStatus } from "#api/v1alpha1/serviceimage/index.ts"
import type { Instant } from "#lib/instant.ts"

/** Counts alone are told at most this often: N objects must not become N writes of the status. */
const progressMs = 2000

/** Whether a status is to be written: at once if it says something new, a little later if only counts moved. */
export function whenToReport(
  before: ServiceImageStatus | undefined,
  next: ServiceImageStatus,
  lastAt: Instant | undefined,
): Instant | "Never" {
  if (before && JSON.stringify(sorted(before)) === JSON.stringify(sorted(next))) return "Never"
  if (!before || JSON.stringify(sorted(gist(before))) !== JSON.stringify(sorted(gist(next)))) return 0
  return (lastAt ?? 0) + progressMs
}

/** The status without what changes with every object: counts, and the sentences that contain them. */
function gist({ conditions, tierStatus, progress: _, ...rest }: ServiceImageStatus) {
  const words = (list: readonly { message: string; reason: string }[]) => list.map(({ message: _, ...each }) => each)
  return {
    ...rest,
    conditions: words(conditions),
    tiers: tierStatus.map(tier => ({
      name: tier.upgradeTier,
      image: tier.newDeploymentImage,
      conditions: words(tier.conditions),
      failures: tier.failures.map(({ reason, scope }) => ({ reason, scope })),
    })),
  }
}

/** The server returns keys in its own order. */
function sorted(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(sorted)
  if (typeof value !== "object" || value === null) return value
  const entries = Object.entries(value).filter(([, each]) => each !== undefined)
  return Object.fromEntries(entries.sort(([a], [b]) => (a < b ? -1 : 1)).map(([key, each]) => [key, sorted(each)]))
}

export type Episode = { type: "Normal" | "Warning"; reason: Reason; message: string }

/** What is worth an event: the turning points of a rollout, never one per object. */
export function storyOf(before: ServiceImageStatus | undefined, next: ServiceImageStatus): Episode[] {
  const story: Episode[] = []
  if (next.operation && next.operation.id !== before?.operation?.id) {
    const images = [...new Set(Object.values(next.operation.images))].join(", ")
    story.push({ type: "Normal", reason: "RollingOut", message: `operation ${next.operation.id} started: ${images}` })
  }
  for (const tier of next.tierStatus) {
    const was = before?.tierStatus.find(each => each.upgradeTier === tier.upgradeTier)
    const complete = tier.conditions.find(each => each.type === "Complete")
    const wasComplete = was?.conditions.some(each => each.type === "Complete" && each.status === "True") ?? false
    const title = tier.upgradeTier === "" ? "the default tier" : `tier ${tier.upgradeTier}`
    if (complete?.status === "True" && was && !wasComplete)
      story.push({ type: "Normal", reason: "AllUpToDate", message: `${title} is complete: ${complete.message}` })
    if (complete?.status === "False" && complete.reason === "TierReopened" && wasComplete)
      story.push({ type: "Normal", reason: "TierReopened", message: `${title}: ${complete.message}` })
  }
  for (const type of ["Complete", "Stalled"] as const) {
    const [now, was] = [next, before].map(status => status?.conditions.find(each => each.type === type))
    const isNews = now?.status === "True" && (was?.status !== "True" || was.reason !== now.reason)
    if (isNews)
      story.push({ type: type === "Stalled" ? "Warning" : "Normal", reason: now.reason, message: now.message })
  }
  return story
}
