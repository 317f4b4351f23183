import type { Client } from "#runtime/client/client.ts"
import { isFailure } from "#runtime/client/errors.ts"
import type { KubeObject, Resource } from "#runtime/resource.ts"
import { Failure, type Input } from "./command.ts"
import { fetchAll } from "./commands/get.ts"
import { serviceImages, shortOf } from "./kinds.ts"
import { countOf } from "./render/status.ts"
import { defaultTier, type Rollout, rolloutOf, type Seen, type TierProgress } from "./rollout.ts"

/** The patch, if there is one, and what the caller wants to keep of the decision. */
export type Patch = { spec?: object; metadata?: { annotations: Record<string, string | null> } }

/** Conflicts that are retried: a rollout writes its status several times a second. */
const attempts = 10

/**
 * Reads one ServiceImage, decides, and writes on condition of the version that was read; after a conflict it reads and
 * decides again. `decide` throws a Failure to refuse, and returns no patch to leave the object as it is.
 */
export async function change<T extends { patch?: Patch | undefined }>(
  name: string,
  decide: (object: Seen) => T,
  options: { client: Client; dryRun?: boolean },
): Promise<T & { object: Seen }> {
  return changeObject({ resource: serviceImages, name }, decide, options)
}

/** The same for an object of any kind. */
export async function changeObject<O extends KubeObject, T extends { patch?: Patch | undefined }>(
  { resource, name, namespace }: { resource: Resource; name: string; namespace?: string },
  decide: (object: O) => T,
  { client, dryRun = false }: { client: Client; dryRun?: boolean },
): Promise<T & { object: O }> {
  for (let attempt = 1; ; attempt++) {
    const [object] = await fetchAll<O>(client, resource, [name], { namespace })
    const decided = decide(object!)
    if (!decided.patch) return { ...decided, object: object! }
    const { resourceVersion } = object!.metadata
    const body = { ...decided.patch, metadata: { ...decided.patch.metadata, resourceVersion } }
    try {
      const written = await client.patch<O>(resource, { name, namespace }, { type: "merge", body }, { dryRun })
      return { ...decided, object: written }
    } catch (error) {
      if (!isFailure(error, "Conflict")) throw error
      if (attempt === attempts)
        throw new Failure(
          `${shortOf(resource)}/${name} kept changing (${attempts} conflicts); nothing was changed, try again`,
        )
    }
  }
}

export const dryRunOf = ({ options }: Input): boolean => options.dryRun === true

/** What was done, or would be. */
export const doneWords = (lines: string, isDryRun: boolean): string =>
  lines
    .split("\n")
    .map(line => `${line}${isDryRun ? " (dry run: nothing was written)" : ""}`)
    .join("\n")

/** What follows, or would follow. */
export const nextWords = (next: string, isDryRun: boolean): string =>
  isDryRun && next ? `If it were written:\n${next}` : next

/** No controller has observed the last generation, so the status is about an older one. */
export const isUnobserved = ({ metadata, status }: Seen) =>
  (status?.observedGeneration ?? 0) < (metadata.generation ?? 0)

export function unobservedSentence({ metadata, status }: Seen, program: string): string {
  const { name, generation = 0 } = metadata
  const seen = status?.observedGeneration ?? 0
  const last = seen === 0 ? "" : `; the last one observed is ${seen}`
  return `no controller has observed generation ${generation} of si/${name} yet${last}: try again in a moment, or check whether ${program} controller runs`
}

/** Named as in the controller's messages. */
export const tierTitle = (name: string) => (name === "" ? `the ${defaultTier}` : `tier ${name}`)

/** As typed: `""` in a shell is an empty word, and literal quotes mean the same. */
export const tierWord = (name: string) => (name === "" ? '""' : name)
export const tierNamed = (word: string) => (word === '""' ? "" : word)

export const inWords = (names: readonly string[]) =>
  names.length < 2 ? names.join("") : `${names.slice(0, -1).join(", ")} and ${names.at(-1)}`

export const objects = (count: number) => `${count} ${count === 1 ? "object" : "objects"}`

/** `operation g4 is in progress, 412/1000 up to date` */
export function operationSentence(object: Seen): string {
  const { id, phase } = object.status!.operation!
  const verbs: Partial<Record<typeof phase, string>> = {
    InProgress: "is in progress",
    Halted: "is halted",
    RollingBack: "is being rolled back",
    RolledBack: "was rolled back",
    Complete: "is complete",
  }
  return `operation ${id} ${verbs[phase] ?? `is ${phase}`}, ${countOf(rolloutOf(object))} up to date`
}

/** Stamped and not yet up to date: these finish in any case. */
export const underWay = ({ tiers }: Rollout) => tiers.filter(tier => tier.updated > tier.upToDate)

/** `2 objects of tier early and 1 object of the default tier` */
export const underWayWords = (tiers: readonly TierProgress[]) =>
  inWords(tiers.map(tier => `${objects(tier.updated - tier.upToDate)} of ${tierTitle(tier.tier)}`))

/** What happens next: the tiers of the highest unfinished priority, then the others. */
export function courseWords({ tiers }: Rollout, { spec }: Seen, program: string): string {
  const unfinished = tiers.filter(tier => tier.state !== "Complete")
  return courseOf(unfinished, spec, program)
}

export function courseOf(tiers: readonly TierProgress[], spec: Seen["spec"], program: string): string {
  const first = tiers.filter(({ priority }) => priority === tiers[0]?.priority)
  const later = tiers.filter(tier => !first.includes(tier))
  const pods = spec.pace?.podsPerSecond ?? 0
  const pace = pods > 0 ? `, at most ${pods} ${pods === 1 ? "pod" : "pods"} a second` : ""
  const held = first.filter(tier => needsApproval(tier.tier, spec))
  const approval =
    held.length > 0
      ? ` ${capital(inWords(held.map(({ tier }) => tierTitle(tier))))} may wait for ${program} approve.`
      : ""
  const then = later.length > 0 ? `, then ${inWords(later.map(withCount))}` : ""
  return `${capital(inWords(first.map(withCount)))} ${first.length === 1 ? "goes" : "go"} first${then}${pace}.${approval}`
}

const withCount = ({ tier, total }: TierProgress) => `${tierTitle(tier)} (${objects(total)})`

export const needsApproval = (tier: string, spec: Seen["spec"]) =>
  spec.tiers?.some(({ upgradeTier = "", requireApproval }) => upgradeTier === tier && requireApproval) ?? false

export const capital = (text: string) => text.charAt(0).toUpperCase() + text.slice(1)
