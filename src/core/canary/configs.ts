import { retryAnnotation } from "#api/v1alpha1/canary/annotations.ts"
import { maxUntrackedConfigs } from "#api/v1alpha1/canary/bounds.ts"
import type { CanaryStatus, Run } from "#api/v1alpha1/canary/index.ts"
import { digestOf } from "./checksum.ts"
import { absent, type ConfigRef, isConfigMap, nameIn, snapshotName, snapshotSuffix } from "./config-refs.ts"
import { type Decision, sourceOf, statusOf, testedOf } from "./decision.ts"
import type { Act, SetSeen, Sight } from "./sight.ts"

/**
 * What is concluded from the ConfigMaps and Secrets of a template. A change starts a run as a change of the template does,
 * because it becomes one: the digest of what is read now stands in an annotation of the template, the mark. So a revision
 * is a template with its configuration, here and in everything that compares templates.
 */

/** Checksums by `configmap/NAME` and `secret/NAME`. */
export type Tracked = Readonly<Record<string, string>>

/** As it is now. What cannot be read, or must be there and is not, counts as it was last known: that is no change. */
function checksumNow({ configs }: Sight, { key, isOptional }: ConfigRef, last: Tracked): string | undefined {
  const read = configs!.read(key)
  if (typeof read === "object") return read.checksum
  const known = isOptional || last[key] !== absent ? last[key] : undefined
  if (read === "Missing") return isOptional ? absent : known
  return read === "Unread" || read === "Unreadable" ? known : undefined
}

function checksumsNow(sight: Sight, refs: readonly ConfigRef[], last: Tracked): Tracked {
  const entries = refs.map(ref => [ref.key, checksumNow(sight, ref, last)] as const)
  return Object.fromEntries(entries.filter((entry): entry is [string, string] => entry[1] !== undefined))
}

/** What the running revision was promoted with. What was never read before counts as it is read now. */
function trackedOf(sight: Sight, source: SetSeen): Tracked {
  const { trackedConfigs = {}, configs: [recorded] = [] } = statusOf(sight)
  const known: Tracked = recorded?.hash === source.hash ? trackedConfigs : {}
  const now = checksumsNow(sight, source.configs?.refs ?? [], known)
  return Object.fromEntries(Object.entries(now).map(([key, value]) => [key, known[key] ?? value]))
}

/** What pods of the workload's template would read now. */
const nowOf = (sight: Sight, last: Tracked): Tracked => checksumsNow(sight, sight.workload?.configs?.refs ?? [], last)

const differing = (now: Tracked, before: Tracked): string[] => Object.keys(now).filter(key => now[key] !== before[key])

/** This template with this configuration failed before, and no person wants it tried again. */
export function isRejected(sight: Sight, checksum: string): boolean {
  const { phase, lastAppliedSpec, history: [last] = [] } = statusOf(sight)
  const isRetried = last !== undefined && sight.canary.metadata.annotations?.[retryAnnotation] === last.id
  return phase === "Failed" && lastAppliedSpec === checksum && !isRetried
}

export const rejected = (sight: Sight): Pick<Decision, "reason" | "message" | "isStalled"> => {
  const last = statusOf(sight).history?.[0]
  const what =
    sight.configs && statusOf(sight).trackedConfigs ? "this template with this configuration" : "this template"
  const why = last ? ` (${last.reason})` : ""
  return {
    reason: "Rejected",
    message: `${what} failed before${why}: change it, or run aim resume canary/${sight.canary.metadata.name}`,
    isStalled: true,
  }
}

/**
 * No run is under way: snapshots of what the running revision reads, and of what the next one will read; then the mark of
 * the template. A template that its own controller rolls out is left alone.
 */
export function configured(
  sight: Sight,
  source: SetSeen,
): (Partial<Decision> & Pick<Decision, "reason" | "message">) | undefined {
  const { configs, workload } = sight
  if (!configs || !workload || statusOf(sight).phase === "Initializing") return undefined
  const tracked = trackedOf(sight, source)
  const now = nowOf(sight, tracked)
  const act = nextSnapshot(sight, tracked) ?? nextSnapshot(sight, now)
  if (act) return { act, reason: "Adopting", message: `${act.config} gets a snapshot` }
  const names = differing(now, tracked)
  // Where nothing differs, the mark is that of the running revision.
  const mark = names.length === 0 ? (source.configs?.mark ?? "") : digestOf(now)
  const { hold, isPaused, checksum, size } = workload
  const isFree = !hold && !isPaused && checksum === source.checksum
  if (mark === (workload.configs?.mark ?? "") || size === 0 || !((hold && isPaused) || isFree)) return undefined
  if (isRejected(sight, configs.checksumWith(mark))) return rejected(sight)
  const message = names.length > 0 ? `${names.join(", ")} changed` : "the configuration is again the one that runs"
  return { act: { do: "mark", mark }, reason: "Started", message }
}

/** A snapshot can be made as long as the object has this content. */
function nextSnapshot({ configs }: Sight, tracked: Tracked): Extract<Act, { do: "snapshot" }> | undefined {
  if (!configs?.takesSnapshots) return undefined
  for (const [config, checksum] of Object.entries(tracked)) {
    if (!isConfigMap(config) || configs.snapshot(config, checksum) !== "None") continue
    const read = configs.read(config)
    if (typeof read === "object" && read.checksum === checksum) return { do: "snapshot", config, checksum }
  }
  return undefined
}

/** What a run that starts now proves. */
export function provenBy(sight: Sight, source: SetSeen): { readonly configs?: Tracked; readonly message: string } {
  if (!sight.configs) return { message: "the template changed" }
  const tracked = trackedOf(sight, source)
  const configs = nowOf(sight, tracked)
  const names = differing(configs, tracked).filter(key => Object.hasOwn(tracked, key))
  const isSameTemplate = sight.configs.checksumWith(source.configs?.mark ?? "") === source.checksum
  const what = isSameTemplate ? names : ["the template", ...names]
  return {
    ...(Object.keys(configs).length > 0 && { configs }),
    message: `${what.join(" and ") || "the template"} changed`,
  }
}

/** What changed since the run began. What it could not read then is no change. */
export function changedSince(sight: Sight, run: Run): string[] {
  if (!sight.configs || !run.configs) return []
  const before: Tracked = run.configs
  return differing(nowOf(sight, before), before).filter(key => Object.hasOwn(before, key))
}

/** A snapshot that neither a pod nor a revision needs. */
export function unneeded(sight: Sight): Act | undefined {
  const { snapshots = [] } = sight.configs ?? {}
  const { configs = [] } = statusOf(sight)
  const needed = new Set(
    configs.flatMap(each => Object.entries(each.snapshots).map(([name, suffix]) => snapshotName(name, suffix))),
  )
  const free = snapshots.find(({ name, isRead }) => !isRead && !needed.has(name))
  return free && { do: "dropSnapshot", name: free.name }
}

/**
 * The Canary goes. Pods go on reading their snapshots, also when a container restarts. So these become the ReplicaSet's (or
 * the ControllerRevision's), and go with it.
 */
export function leftSnapshots({ configs }: Sight, source: SetSeen | undefined): Act | undefined {
  for (const { name, isRead, owner } of configs?.snapshots ?? []) {
    if (!isRead) return { do: "dropSnapshot", name }
    if (source && owner !== source.name) return { do: "giveSnapshot", name, set: source.name }
  }
  return undefined
}

type Recorded = Pick<CanaryStatus, "trackedConfigs" | "configs" | "untrackedConfigs">
type Entry = NonNullable<CanaryStatus["configs"]>[number]

/** What the status says after a look: what the running revision was promoted with, and what pods of each revision read. */
export function configStatusOf(sight: Sight, { run, ended }: Pick<Decision, "run" | "ended">): Recorded {
  const before = statusOf(sight)
  if (!sight.configs) return {}
  const untracked = untrackedOf(sight)
  const more: Recorded = untracked.length > 0 ? { untrackedConfigs: untracked } : {}
  if (ended?.result === "Promoted" && before.run) {
    const tested = testedOf(sight, before.run)
    if (tested) return { ...more, ...recorded(sight, tested, before.run.configs ?? {}) }
  }
  const source = sourceOf(sight, run ?? null)
  if (!source) {
    const { trackedConfigs, configs } = before
    return { ...more, ...(trackedConfigs && { trackedConfigs }), ...(configs && { configs }) }
  }
  const isKnown = before.configs?.[0]?.hash === source.hash
  const tracked = run && isKnown ? (before.trackedConfigs ?? {}) : trackedOf(sight, source)
  const own = recorded(sight, source, tracked)
  // The ReplicaSets of a run's Deployment are found by its name: their hash would be one more write.
  const place = run && { workload: run.target.workload, hash: sight.set ? run.target.hash : "" }
  const target = place && run.configs && entryOf(sight, place, run.configs)
  if (!target) return { ...more, ...own }
  return { ...more, ...own, configs: [own.configs?.[0] ?? entryOf(sight, placeOf(sight, source), {}), target] }
}

function recorded(sight: Sight, set: SetSeen, tracked: Tracked): Recorded {
  if (Object.keys(tracked).length === 0) return {}
  return { trackedConfigs: tracked, configs: [entryOf(sight, placeOf(sight, set), tracked)] }
}

/** By which pods of a revision are found: a ReplicaSet has the hash in its name. */
const placeOf = ({ workload, set }: Sight, { name, hash }: SetSeen) => ({
  hash,
  workload: set ? (workload?.name ?? "") : name.slice(0, -(hash.length + 1)),
})

/** Snapshots that are there. One that cannot be looked at now counts as before. */
function entryOf(
  sight: Sight,
  { hash, workload = "" }: { hash: string; workload?: string | undefined },
  tracked: Tracked,
): Entry {
  const { configs, canary } = sight
  const before = statusOf(sight).configs?.filter(each => each.workload === workload) ?? []
  const snapshots: Record<string, string> = {}
  for (const [key, checksum] of Object.entries(tracked)) {
    if (!isConfigMap(key) || configs!.takesSnapshots === false) continue
    const suffix = snapshotSuffix(canary.metadata.name, checksum)
    const is = configs!.takesSnapshots ? configs!.snapshot(key, checksum) : "Unread"
    const wasThere = before.some(each => each.snapshots[nameIn(key)] === suffix)
    if (is === "There" || (is === "Unread" && wasThere)) snapshots[nameIn(key)] = suffix
  }
  return { workload, ...(hash && { hash }), snapshots }
}

function untrackedOf(sight: Sight): NonNullable<CanaryStatus["untrackedConfigs"]> {
  const refs = sight.workload?.configs?.refs ?? []
  const { untrackedConfigs: before = [] } = statusOf(sight)
  const found = refs.flatMap(({ key }): typeof before => {
    const read = sight.configs!.read(key)
    if (read === "NotGranted") return [{ name: key, reason: "ConfigNotTracked" }]
    if (read === "Unreadable") return [{ name: key, reason: "ConfigUnreadable" }]
    return read === "Unread" ? before.filter(({ name }) => name === key) : []
  })
  return found.slice(0, maxUntrackedConfigs)
}
