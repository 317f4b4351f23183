import { supersedeAnnotation } from "#api/v1alpha1/serviceimage/annotations.ts"
import type { ServiceImage } from "#api/v1alpha1/serviceimage/index.ts"
import { isInProgress } from "#core/fleet/operation.ts"
import { parseImageReference, repositoryOf } from "#core/image/reference.ts"
import { connectionOf, Failure, type Run, type World } from "../command.ts"
import { parseNamed } from "../kinds.ts"
import {
  change,
  courseOf,
  doneWords,
  dryRunOf,
  isUnobserved,
  nextWords,
  operationSentence,
  type Patch,
  tierTitle,
  unobservedSentence,
} from "../operate.ts"
import { printable } from "../render/paint.ts"
import { rolloutOf, type Seen } from "../rollout.ts"
import { differences, parseSettings, type Setting, withSettings } from "../set-image.ts"
import { timeoutOf, waitUntilOver } from "./wait.ts"

export const run: Run = async (input, world) => {
  const [first, ...words] = input.arguments
  const { name } = parseNamed(first!)
  const wanted: Wanted = { settings: parseSettings(words), supersede: Boolean(input.options.supersede), words }
  const dryRun = dryRunOf(input)
  const timeoutMs = timeoutOf(input)
  const client = await world.connect(connectionOf(input))
  try {
    const decided = await change(name, object => decide(object, wanted, world.program), { client, dryRun })
    const done = doneWords(decided.lines.join("\n"), dryRun)
    const next = decided.patch && nextWords(whatIsNext(decided, world), dryRun)
    if (!input.options.wait || dryRun) return { text: `${done}\n`, exitCode: 0, ...(next && { next }) }
    await world.write(`${done}\n`)
    if (next) world.say(next)
    return await waitUntilOver([name], { client, world, timeoutMs })
  } finally {
    client.close()
  }
}

type Wanted = { settings: readonly Setting[]; supersede: boolean; words: readonly string[] }
type Decision = {
  patch?: Patch
  changes: ReturnType<typeof differences>
  lines: string[]
  /** The operation that this change ends. */
  overtakes?: string
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

function whatIsNext({ changes, overtakes, object }: Decision & { object: Seen }, { program }: World): string {
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
