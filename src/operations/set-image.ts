import { supersedeAnnotation } from "#api/v1alpha1/serviceimage/annotations.ts"
import type { ServiceImage } from "#api/v1alpha1/serviceimage/index.ts"
import { isInProgress } from "#core/fleet/operation.ts"
import { parseImageReference, repositoryOf } from "#core/image/reference.ts"
import { printable } from "#lib/text.ts"
import type { Decided, Patch } from "./change.ts"
import { Failure } from "./refusal.ts"
import { rolloutOf, type Seen } from "./rollout.ts"
import { differences, type Setting, withSettings } from "./settings.ts"
import { courseOf, isUnobserved, operationSentence, tierTitle, unobservedSentence } from "./words.ts"

/** `words`: the settings as they were typed. */
export type Wanted = { settings: readonly Setting[]; supersede: boolean; words: readonly string[] }

type Decision = {
  patch?: Patch
  changes: ReturnType<typeof differences>
  lines: string[]
  /** The operation that this change ends. */
  overtakes?: string
}

/** Sets images. An operation in progress is overtaken only where that is asked for. */
export function setImage(object: Seen, wanted: Wanted, program: string): Decided {
  const { patch, lines, ...decision } = decide(object, wanted, program)
  return {
    patch,
    done: lines.join("\n"),
    next: after => (patch ? whatIsNext({ ...decision, object: after }, program) : ""),
  }
}

/** Decides from the object alone, so that after a conflict the new object is judged. */
function decide(object: Seen, { settings, supersede, words }: Wanted, program: string): Decision {
  const { metadata, spec, status } = object
  const { name } = metadata
  const next = withSettings(spec, settings)
  const changes = differences(spec, next)
  if (changes.length === 0) return { changes, lines: [nothingToDo(object, settings, program)] }

  const isUnderWay = isInProgress(object as ServiceImage)
  const what = isUnobserved(object) ? unobservedSentence(object, program) : isUnderWay ? operationSentence(object) : ""
  if (isUnderWay && !supersede) throw new Failure(refusal(object, what, { words, program }))
  const patch: Patch = {
    spec: {
      ...(next.defaultImage !== (spec.defaultImage ?? "") && { defaultImage: next.defaultImage }),
      ...(settings.some(({ tier }) => tier !== undefined) && { tiers: next.tiers }),
    },
    // Names the generation that was read. With serialize: Enforce the server requires it.
    ...(supersede && { metadata: { annotations: { [supersedeAnnotation]: String(metadata.generation ?? 0) } } }),
  }
  const lines = changes.map(({ tier, from, to }) => `si/${name} ${tierTitle(tier)}: ${printable(from)} → ${to}`)
  const overtakes = isUnderWay && !isUnobserved(object) ? status?.operation?.id : undefined
  return { patch, changes, lines, ...(overtakes && { overtakes }) }
}

function nothingToDo({ metadata, spec, status }: Seen, settings: readonly Setting[], program: string): string {
  const { name } = metadata
  const isForDefault = settings.some(({ tier, image }) => tier === undefined && image !== spec.defaultImage)
  const owners = (spec.tiers ?? []).filter(({ image }) => image)
  if (isForDefault && owners.length > 0 && owners.length === spec.tiers?.length)
    return `si/${name}: nothing changes, because each tier names its own image; name the tier: ${program} set-image si/${name} ${owners[0]!.upgradeTier ?? ""}=IMAGE`
  if (status?.operation?.phase === "RolledBack")
    return `si/${name}: nothing changes, these are the images that were rolled back; to try them again: ${program} resume si/${name}`
  return `si/${name}: nothing changes, these are its images already`
}

function refusal(
  { metadata, status }: Seen,
  what: string,
  { words, program }: { words: readonly string[]; program: string },
) {
  const { name } = metadata
  const same = `${program} set-image si/${name} ${words.join(" ")}`
  const others =
    status?.operation?.phase === "InProgress" ? `; to roll it back first: ${program} rollback si/${name}` : ""
  return [
    `si/${name}: ${what}`,
    `A change of images now would overtake it. To wait for it: ${program} wait si/${name}${others}`,
    `To overtake it: ${same} --supersede`,
  ].join("\n")
}

type Following = Pick<Decision, "changes" | "overtakes"> & { object: Seen }

function whatIsNext({ changes, overtakes, object }: Following, program: string): string {
  const { name } = object.metadata
  const rollout = rolloutOf(object)
  const affected = rollout.tiers.filter(
    ({ tier, state }) => state !== "Complete" || changes.some(each => each.tier === tier),
  )
  const moved = changes.find(({ from, to }) => from && repositoryNamed(from) !== repositoryNamed(to))
  return [
    moved ? `Note: ${tierTitle(moved.tier)} changes its repository, to ${repositoryNamed(moved.to)}.` : "",
    overtakes ? `Operation ${overtakes} ends here, as Superseded; objects that it changed get the new images.` : "",
    object.spec.paused
      ? `spec.paused is true: nothing is stamped until ${program} resume si/${name}`
      : courseOf(affected, object.spec, program),
  ]
    .filter(Boolean)
    .join("\n")
}

function repositoryNamed(image: string): string {
  const parsed = parseImageReference(image)
  return parsed.ok ? repositoryOf(parsed.reference) : ""
}
