import type { Target } from "#api/v1alpha1/serviceimage/index.ts"
import { type Inventory, kindOf } from "#explain/inventory.ts"
import { readRollouts, targetsIn } from "#explain/serviceimage/reading.ts"
import { survey } from "#explain/serviceimage/survey.ts"
import { type Why, whyObject, whyRollout } from "#explain/serviceimage/why.ts"
import { closest } from "#lib/closest.ts"
import { formatInstant, type Instant } from "#lib/instant.ts"
import { type Answer, Failure, type Run } from "../command.ts"
import { kindNamed, serviceImages } from "../kinds.ts"
import { demand, look } from "../look.ts"
import { checkNamespace } from "../names.ts"
import { askAboutKind } from "../plan-kind.ts"
import { type Answered, whyText } from "../render/why.ts"
import { toYaml } from "../render/yaml.ts"
import { findObject, resolveKind, type StampedKind, splitReference } from "../stamped-kinds.ts"
import { askAboutSources, sourceKind } from "../why-sources.ts"
import { withUpdate } from "../workloads/why.ts"
import { workloadsIn } from "../workloads/words.ts"

export const run: Run = async (input, world) => {
  const { word, name } = splitReference(input.arguments[0]!)
  const format = input.options.output as "json" | "yaml" | undefined
  const given = input.options.namespace as string | undefined
  const namespace = given === undefined ? undefined : checkNamespace(given, "--namespace")
  const resource = sourceKind(word)
  if (resource) {
    const { answer, now } = await askAboutSources(input, world, { resource, name, namespace })
    return told(answer, now)
  }
  const own = kindNamed(word)
  if (own && own !== serviceImages) {
    const { answer, now } = await askAboutKind(input, world, { resource: own, name, namespace })
    return told(answer, now)
  }
  let kind: Kind | undefined
  const targets = (seen: Inventory) => {
    kind = resolveKind(word, seen)
    return targetsFor(kind, name, seen)
  }
  const { inventory, now } = await look(input, world, readRollouts(targets))
  demand(inventory, serviceImages)
  const asked = kind ?? resolveKind(word, inventory)
  const answer = explain(asked, inventory, now)
  const workload = asked === "si" ? undefined : workloadsIn([word])
  if (asked === "si" || !workload || input.options.from !== undefined) return told(answer, now)
  const { metadata } = findObject(inventory, { kind: asked, name }, namespace).object
  const where = { resource: workload.resource, name, namespace: metadata.namespace ?? "" }
  const whole = await withUpdate(input, world, where, { answer, now })
  return told(whole.answer, whole.now)

  function told(answer: Answered, at: Instant): Answer {
    if (format === "json") return { text: `${JSON.stringify(dated(answer), null, 2)}\n`, exitCode: 0 }
    if (format === "yaml") return { text: toYaml(dated(answer)), exitCode: 0 }
    return { text: whyText(answer, { view: world.view, now: at }), exitCode: 0 }
  }

  function explain(kind: Kind, seen: Inventory, now: Instant): Why {
    const surveyed = survey(seen, now)
    if (surveyed.podsMissing)
      world.say(`Pods could not be read (${surveyed.podsMissing}), so pod failures are not explained.`)
    if (kind !== "si") return whyObject(surveyed, findObject(seen, { kind, name }, namespace))
    const found = surveyed.rollouts.find(({ serviceImage }) => serviceImage.metadata.name === name)
    if (found) return whyRollout(found, now)
    const meant = closest(
      name,
      surveyed.rollouts.map(({ serviceImage }) => serviceImage.metadata.name),
    )
    throw new Failure(`there is no ServiceImage ${name}${meant ? `; did you mean si/${meant}?` : ""}`)
  }
}

/** Times as Kubernetes writes them. */
const dated = ({ since, lastDecision, ...answer }: Answered) => ({
  ...answer,
  ...(since !== undefined && { since: formatInstant(since) }),
  ...(lastDecision && { lastDecision: { ...lastDecision, at: formatInstant(lastDecision.at) } }),
})

/** Only what the question needs: the objects of one kind, and the objects that they own. */
function targetsFor(kind: Kind, name: string, seen: Inventory): Target[] {
  const all = targetsIn(seen)
  if (kind === "si") {
    const [own] = [...seen.of(kindOf(serviceImages)).values()].filter(({ metadata }) => metadata.name === name)
    const target = (own as { spec?: { target: Target } } | undefined)?.spec?.target
    return target ? all.filter(each => isSameKind(each, target)) : []
  }
  const asked = targetOf(kind)
  return [...all.filter(each => isSameKind(each, asked)), asked]
}

type Kind = ReturnType<typeof resolveKind>

/** As if a ServiceImage selected it: a missing object is reported even where no ServiceImage does. */
const targetOf = ({ group, versions, kind }: StampedKind): Target => ({
  apiVersion: `${group}/${versions[0] ?? "v1"}`,
  kind,
  image: group === "apps" ? { container: "-" } : { paths: ["spec.image"] },
  health: "",
})

const groupOf = ({ apiVersion }: Target) => apiVersion.split("/")[0]
const isSameKind = (a: Target, b: Target) => a.kind === b.kind && groupOf(a) === groupOf(b)
