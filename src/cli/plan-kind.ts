import type { Explanation } from "#explain/explained.ts"
import { kindOf } from "#explain/inventory.ts"
import { formatInstant, type Instant } from "#lib/instant.ts"
import type { KubeObject, Resource } from "#runtime/resource.ts"
import { type Answer, type Input, UsageError, type World } from "./command.ts"
import { shortOf } from "./kinds.ts"
import { checkNamespace } from "./names.ts"
import { explainedOf, lookFor, notThere, type Question } from "./question.ts"
import { kindPlanText } from "./render/kind.ts"
import type { Answered } from "./render/why.ts"
import { toYaml } from "./render/yaml.ts"

// Questions about any kind of ours, by what its folder in src/explain answers. ServiceImages, AlternateImageSources and
// pods have questions of their own.

/** `aim why KIND/NAME`. */
export async function askAboutKind(
  input: Input,
  world: World,
  question: Question & { name: string },
): Promise<{ answer: Answered; now: Instant }> {
  const { all, now, missing } = await explained(input, world, question, [question.name])
  const [found] = all
  if (!found) throw missing(question.name)
  const { reason, message, meaning, since, details = [], next = [], lookAgainAt } = found.explanation
  const sentences = [
    [message, meaning].filter(Boolean).join(". "),
    ...details,
    ...next.map(phrase => `Next: ${phrase}.`),
    ...(lookAgainAt === undefined ? [] : [`It looks again at ${formatInstant(lookAgainAt)}.`]),
  ]
  return { answer: { reason, sentences: sentences.filter(Boolean), since }, now }
}

/** What the controller of a kind does next for one object. */
export type PlannedObject = {
  name: string
  namespace?: string
  reason: string
  message: string
  /** Absent where only its status tells. */
  next?: readonly string[]
  details?: readonly string[]
  lookAgainAt?: Instant
}

/** `aim plan KIND`, with any number of names: all of one namespace; of a dump, of every namespace unless one is given. */
export async function planKind(
  input: Input,
  world: World,
  { resource, names }: { resource: Resource; names: readonly string[] },
): Promise<Answer> {
  if (input.options.file !== undefined)
    throw new UsageError(
      `--file: only ServiceImages can be planned before they are applied: leave out ${shortOf(resource)}`,
    )
  const given = input.options.namespace as string | undefined
  const question = {
    resource,
    name: names.length === 1 ? names[0] : undefined,
    namespace: given === undefined ? undefined : checkNamespace(given, "--namespace"),
  }
  const { all, now, namespace, missing } = await explained(input, world, question, names)
  const absent = names.find(name => !all.some(({ object }) => object.metadata.name === name))
  if (absent !== undefined) throw missing(absent)
  const plans = all.map(planned)
  const format = input.options.output as "json" | "yaml" | undefined
  if (format) {
    const whole = plans.map(dated)
    return { text: format === "json" ? `${JSON.stringify(whole, null, 2)}\n` : toYaml(whole), exitCode: 0 }
  }
  if (plans.length === 0)
    world.say(`No ${resource.kind}s${namespace === undefined ? "" : ` in namespace ${namespace}`}.`)
  const how = { view: world.view, now, short: shortOf(resource) }
  return { text: plans.map(plan => kindPlanText(plan, how)).join("\n"), exitCode: 0 }
}

/** The explanation of each object that is asked for: of these names, or of all. */
async function explained(input: Input, world: World, question: Question, names: readonly string[]) {
  const { resource } = question
  const { reading, explainer } = await explainedOf(resource)
  const { inventory, now, namespace } = await lookFor(input, world, question, namespace => reading({ namespace }))
  const isAsked = ({ metadata }: KubeObject) =>
    (namespace === undefined || metadata.namespace === namespace) &&
    (names.length === 0 || names.includes(metadata.name))
  const explain = explainer?.({ inventory, now })
  const all: { object: KubeObject; explanation: Explanation }[] = []
  for (const object of inventory.of(kindOf(resource)).values())
    if (explain && isAsked(object)) all.push({ object, explanation: await explain(object) })
  return { all, now, namespace, missing: (name: string) => notThere(inventory, { resource, name, namespace }) }
}

const planned = ({ object, explanation }: { object: KubeObject; explanation: Explanation }): PlannedObject => {
  const { name, namespace } = object.metadata
  const { reason, message, next, details, lookAgainAt } = explanation
  return {
    name,
    ...(namespace !== undefined && { namespace }),
    reason,
    message,
    ...(next && { next }),
    ...(details && { details }),
    ...(lookAgainAt !== undefined && { lookAgainAt }),
  }
}

/** Times as Kubernetes writes them. */
const dated = ({ lookAgainAt, ...plan }: PlannedObject) => ({
  ...plan,
  ...(lookAgainAt !== undefined && { lookAgainAt: formatInstant(lookAgainAt) }),
})
